/** Texts of the panel Limits. */

export const limitsTexts = {
  'limits.title': ['Limits', '限流'],
  'limits.all': ['All limits', '全部限流'],
  'limits.none': ['The config has no limits.', '配置中没有限流。'],
  'limits.limit': ['Limit', '限流'],
  'limits.mode': ['Mode', '模式'],
  'limits.by': ['Counts by', '计数对象'],
  'limits.number': ['Number', '数值'],
  'limits.highest': ['Highest use', '最高用量'],
  'limits.near': ['Near or over', '接近或超出'],
  'limits.refused': ['Refused', '已拒绝'],
  'limits.shadow': ['In shadow', '影子拒绝'],
  'limits.whatIf': ['What if “{limit}” had another number?', '如果改变“{limit}”的数值？'],
  'limits.unchanged': ['As it is', '保持不变'],
  'limits.lower': ['{n} % lower', '降低 {n} %'],
  'limits.higher': ['{n} % higher', '提高 {n} %'],
  'limits.wouldRefuse': [
    'In the last 24 hours it would have refused {n:caller|callers}, {requests} requests at least.',
    '过去 24 小时内将拒绝 {n} 个调用方，至少 {requests} 个请求。'
  ],
  'limits.notRecorded': [
    'No use is recorded, since ops.useRecord is 0s: there are no numbers.',
    'ops.useRecord 为 0s，没有记录用量，因此没有数据。'
  ],
  'limits.lowest': [
    'The lowest number that refuses nobody is {n}.',
    '不会拒绝任何人的最小数值是 {n}。'
  ],
  'limits.write': ['Write this in limits.yaml', '写入 limits.yaml'],
  'limitMode.enforce': ['enforced', '执行'],
  'limitMode.shadow': ['shadow', '影子'],
  'limitMode.off': ['off', '关闭'],
  'limitBy.user': ['user', '用户'],
  'limitBy.address': ['address', '地址'],
  'limitBy.session': ['session', '会话'],
  'limitBy.route': ['route', '路由'],
  'limitBy.account': ['account', '账号']
} as const
