/** Texts of the panel Requests and its timeline. */

export const requestsTexts = {
  'requests.title': ['Requests', '请求'],
  'requests.last': ['Last requests', '最近的请求'],
  'requests.none': ['No request fits.', '没有符合条件的请求。'],
  'requests.follow': ['Follow', '持续刷新'],
  'requests.silent': ['These replicas did not answer: {replicas}', '以下副本没有响应：{replicas}'],
  'requests.anyStatus': ['Any status', '全部状态'],
  'requests.failed': ['Failed', '失败'],
  'requests.running': ['running', '进行中'],
  'requests.time': ['Time', '时间'],
  'requests.status': ['Status', '状态'],
  'requests.request': ['Request', '请求'],
  'requests.route': ['Route', '路由'],
  'requests.user': ['User', '用户'],
  'requests.duration': ['Duration', '耗时'],
  'requests.cut': ['cut', '中断'],
  'requests.show': ['Timeline of {path} at {time}', '{time} {path} 的时间线'],
  'timeline.title': ['Timeline', '时间线'],
  'timeline.todo': ['What to do:', '处理方法：'],
  'timeline.refusedBy': [
    'The limit {limit} ({max}) refused the request.',
    '限流 {limit}（{max}）拒绝了该请求。'
  ],
  'timeline.needsRoles': ['The route needs a role: {roles}.', '该路由需要角色：{roles}。'],
  'timeline.ended': ['The session ended: {reason}', '会话已结束：{reason}'],
  'timeline.session': ['Session', '会话'],
  'timeline.limits': ['Limits', '限流'],
  'timeline.queue': ['Queue', '排队'],
  'timeline.shape': ['Shape', '整形'],
  'timeline.all': ['Whole request', '整个请求'],
  'timeline.attempt': ['Upstream {upstream}', '上游 {upstream}'],
  'timeline.age': ['{age} old', '已存在 {age}'],
  'timeline.notAsked': ['not asked', '未检查'],
  'timeline.exceeded': ['exceeded', '超限'],
  'timeline.shadow': ['exceeded, shadow only', '超限（仅影子）'],
  'timeline.sent': ['Status {status} was sent', '已发送状态 {status}'],
  'timeline.copy': ['from a copy: {copy}', '来自副本：{copy}'],
  'timeline.missing': ['missing parts: {parts}', '缺少部分：{parts}'],
  'timeline.requestId': ['Request id', '请求编号'],
  'timeline.userId': ['User id', '用户编号'],
  'timeline.sessionId': ['Session', '会话'],
  'timeline.trace': ['Trace', '链路'],
  'sessionFrom.cache': ['found in the cache', '来自缓存'],
  'sessionFrom.store': ['read from the store', '读自存储'],
  'sessionFrom.none': ['no live session', '没有有效会话'],
  'copy.shared': ['shared with an identical request', '与相同请求共享'],
  'copy.fresh': ['the user’s own copy, still fresh', '用户自己的副本，仍然有效'],
  'copy.validated': [
    'the user’s own copy, confirmed by the upstream',
    '用户自己的副本，已由上游确认'
  ],
  'copy.fixed': [
    'the route’s fixed response, since the upstream failed',
    '上游故障时路由的固定响应'
  ],
  'copy.stale': ['older response, since the upstream failed', '上游故障时的旧响应']
} as const
