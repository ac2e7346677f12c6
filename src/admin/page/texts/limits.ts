/** Texts of the panel Limits. */

export const limitsTexts = {
  'limits.title': 'Limits',
  'limits.all': 'All limits',
  'limits.none': 'The config has no limits.',
  'limits.limit': 'Limit',
  'limits.mode': 'Mode',
  'limits.by': 'Counts by',
  'limits.number': 'Number',
  'limits.hour': 'Highest, this hour',
  'limits.day': '24 hours',
  'limits.over': 'Over',
  'limits.near': 'Nearest',
  'limitMode.enforce': 'enforced',
  'limitMode.shadow': 'shadow',
  'limitMode.off': 'off',
  'limitBy.user': 'user',
  'limitBy.address': 'address',
  'limitBy.session': 'session'
} as const
