/** Texts of the panel Limits. */

export const limitsTexts = {
  'limits.title': ['Limits', '限流'],
  'limits.all': ['All limits', '全部限流'],
  'limits.none': ['The config has no limits.', '配置中没有限流。'],
  'limits.limit': ['Limit', '限流'],
  'limits.mode': ['Mode', '模式'],
  'limits.by': ['Counts by', '计数对象'],
  'limits.number': ['Number', '数值'],
  'limits.hour': ['Highest, this hour', '本小时最高'],
  'limits.day': ['24 hours', '24 小时'],
  'limits.over': ['Over', '超出'],
  'limits.near': ['Nearest', '最接近'],
  'limitMode.enforce': ['enforced', '执行'],
  'limitMode.shadow': ['shadow', '影子'],
  'limitMode.off': ['off', '关闭'],
  'limitBy.user': ['user', '用户'],
  'limitBy.address': ['address', '地址'],
  'limitBy.session': ['session', '会话']
} as const
