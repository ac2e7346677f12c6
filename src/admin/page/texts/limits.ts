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
  'note.there is no record of it yet': ['There is no record of it yet.', '尚无记录。'],
  'note.of each caller the busiest window of each hour is counted: there may be more': [
    'Of each caller the busiest window of each hour is counted: there may be more.',
    '每个调用方每小时只计入最繁忙的窗口，实际可能更多。'
  ],
  'note.Redis did not answer: this is what one process saw': [
    'Redis did not answer: this is what one process saw.',
    'Redis 没有响应：这只是一个进程的数据。'
  ],
  'note.what it counted with another window or kind is left out': [
    'What it counted with another window or kind is left out.',
    '未计入以其他窗口或类型统计的数据。'
  ],
  'note.more callers than can be followed at once: the numbers may be too low': [
    'More callers than can be followed at once: the numbers may be too low.',
    '调用方过多，无法全部跟踪：数值可能偏低。'
  ],
  'note.more processes came than counted together: the upper number may be too low': [
    'More processes came than counted together: the upper number may be too low.',
    '进程数多于共同计数的进程：上限可能偏低。'
  ],
  'note.burst may not be more than max: raise both': [
    'burst may not be more than max: raise both.',
    'burst 不能大于 max：请同时调大。'
  ],
  'caller.account': ['account {account}', '账号 {account}'],
  'caller.user': ['user {user} of {source}', '{source} 的用户 {user}'],
  'caller.session': ['session {session}', '会话 {session}'],
  'caller.address': ['address {address}', '地址 {address}'],
  'limitMode.enforce': ['enforced', '执行'],
  'limitMode.shadow': ['shadow', '影子'],
  'limitMode.off': ['off', '关闭'],
  'limitBy.user': ['user', '用户'],
  'limitBy.address': ['address', '地址'],
  'limitBy.session': ['session', '会话'],
  'limitBy.route': ['route', '路由'],
  'limitBy.account': ['account', '账号']
} as const
