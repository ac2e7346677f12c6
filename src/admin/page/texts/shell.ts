/** Texts of the frame around the panels: navigation, sign-in, connection, dialogs, errors. */

export const shellTexts = {
  'nav.label': ['Panels', '面板'],
  'nav.skip': ['Skip to the content', '跳到主要内容'],
  'nav.now': ['Now', '实时'],
  'nav.requests': ['Requests', '请求'],
  'nav.sessions': ['Sessions', '会话'],
  'nav.limits': ['Limits', '限流'],
  'nav.config': ['Config', '配置'],
  'nav.maintenance': ['Maintenance', '维护'],
  'nav.ledger': ['Ledger', '审计'],
  'theme.label': ['Colours', '主题'],
  'theme.system': ['System', '系统'],
  'theme.light': ['Light', '浅色'],
  'theme.dark': ['Dark', '深色'],
  'language.label': ['Language', '语言'],
  'live.connecting': ['Connecting…', '正在连接…'],
  'live.live': ['Live', '实时'],
  'live.lost': ['Connection lost', '连接已断开'],
  'live.lostLong': [
    'No connection to the gateway. The numbers are those of {time}. Trying again…',
    '与网关的连接已断开。显示的是 {time} 的数据，正在重新连接…'
  ],
  'session.until': ['Signed in until {time}', '登录有效至 {time}'],
  'signIn.title': ['Sign in to operate the gateway', '登录以管理网关'],
  'signIn.again': ['Your session ended. Sign in again', '会话已结束，请重新登录'],
  'signIn.againNote': ['Nothing on this page is lost.', '本页内容不会丢失。'],
  'signIn.username': ['User name', '用户名'],
  'signIn.password': ['Password', '密码'],
  'signIn.submit': ['Sign in', '登录'],
  'signIn.out': ['Sign out', '退出登录'],
  'error.network': ['The gateway does not answer.', '网关没有响应。'],
  'error.requestId': ['Request id: {id}', '请求编号：{id}'],
  'error.retry': ['Try again', '重试'],
  'common.none': ['none', '无']
} as const
