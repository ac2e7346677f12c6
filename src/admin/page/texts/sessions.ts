/** Texts of the panel Sessions, and of the acts' effects. */

export const sessionsTexts = {
  'sessions.title': ['Sessions', '会话'],
  'sessions.signedIn': ['Signed in', '已登录'],
  'sessions.search': ['Search name, id or address', '搜索名称、编号或地址'],
  'sessions.nobody': ['Nobody is signed in.', '当前没有人登录。'],
  'sessions.noMatch': ['No session matches “{search}”.', '没有与“{search}”匹配的会话。'],
  'sessions.notAll': [
    'The first {shown:session|sessions} of {users:user|users}, by name. Only these are sorted.',
    '按名称顺序显示前 {shown} 个会话，共 {users} 位用户。排序仅限已显示的会话。'
  ],
  'sessions.more': ['Show more', '显示更多'],
  'sessions.user': ['User', '用户'],
  'sessions.source': ['Source', '来源'],
  'sessions.since': ['Since', '登录时间'],
  'sessions.used': ['Last used', '最近使用'],
  'sessions.from': ['From', '来自'],
  'sessions.with': ['With', '设备'],
  'sessions.ends': ['Idle end', '空闲到期'],
  'sessions.close': ['Close the session', '关闭会话'],
  'sessions.closeShort': ['Close', '关闭'],
  'sessions.closeLabel': ['Close this session of {user}', '关闭 {user} 的此会话'],
  'sessions.closeText': ['Closes this session of {user}.', '关闭 {user} 的此会话。'],
  'sessions.closeUser': ['Close all of the user', '关闭该用户的全部会话'],
  'sessions.closeUserShort': ['All', '全部'],
  'sessions.closeUserLabel': ['Close all sessions of {user}', '关闭 {user} 的全部会话'],
  'sessions.closeUserText': [
    'Closes all sessions of {user}, on all devices.',
    '关闭 {user} 在所有设备上的全部会话。'
  ],
  'sessions.closeAll': ['Sign everybody out', '让所有人退出'],
  'sessions.closeAllText': [
    'Closes the sessions of all users of the console, at all replicas.',
    '关闭所有副本上全部控制台用户的会话。'
  ],
  'lockouts.title': ['Locked out of signing in', '登录锁定'],
  'lockouts.none': ['Nobody is locked out.', '没有被锁定的登录。'],
  'lockouts.kind': ['Kind', '类型'],
  'lockouts.of': ['Account or address', '账号或地址'],
  'lockouts.until': ['Until', '截止'],
  'lockouts.lift': ['Lift the lockout', '解除锁定'],
  'lockouts.liftShort': ['Lift', '解除'],
  'lockouts.liftLabel': ['Lift the lockout of {of}', '解除 {of} 的锁定'],
  'lockouts.liftText': [
    '{of} may try to sign in again, and former failures are forgotten.',
    '{of} 可以再次尝试登录，之前的失败记录将被清除。'
  ],
  'lockout.account': ['account', '账号'],
  'lockout.address': ['address', '地址'],
  'lockout.account from one address': ['account, from one address', '账号（来自一个地址）'],
  'lockout.account at the operators’ page': ['account at this page', '本页面的账号'],
  'lockout.address at the operators’ page': ['address at this page', '本页面的地址'],
  'lockout.account from one address at the operators’ page': [
    'account at this page, from one address',
    '本页面的账号（来自一个地址）'
  ],
  'lockout.known browser': ['known browser', '已知浏览器'],
  'effect.sessions': ['{n:session ends|sessions end}', '{n} 个会话将结束'],
  'effect.sessionsAtLeast': [
    'At least {n:session ends|sessions end}: more were not counted',
    '至少 {n} 个会话将结束：未全部计数'
  ],
  'effect.users': ['{n:user is affected|users are affected}', '影响 {n} 位用户'],
  'effect.lockouts': ['{n:lockout is lifted|lockouts are lifted}', '解除 {n} 个锁定'],
  'effect.changes': [
    '{n:key of the config changes|keys of the config change}',
    '{n} 个配置项将改变'
  ],
  'effect.restartNeeded': [
    '{n:of them needs a restart|of them need a restart}',
    '其中 {n} 项需要重启'
  ],
  'effect.faults': [
    '{n:fault: the files will be refused|faults: the files will be refused}',
    '{n} 个错误：配置文件将被拒绝'
  ],
  'effect.minutes': ['{n:minute|minutes}', '{n} 分钟'],
  'effect.replicas': ['{n:replica|replicas}', '{n} 个副本'],
  'effect.missing': [
    'Replicas without this config, so that none will roll back: {names}',
    '以下副本没有该配置，因此都不会回滚：{names}'
  ],
  'effect.silent': ['Replicas that do not answer: {names}', '以下副本没有响应：{names}'],
  'effect.routes': ['{n:route|routes}', '{n} 条路由'],
  'effect.requestsPerSecond': ['{n} requests per second now', '当前每秒 {n} 个请求'],
  'undo.sessions.close': [
    'It cannot be taken back. People sign in again; nothing else is lost.',
    '无法撤销。用户可以重新登录，不会丢失其他内容。'
  ],
  'undo.lockouts.lift': [
    'It cannot be taken back. New failures lock again.',
    '无法撤销。新的失败会再次锁定。'
  ],
  'undo.config.reload': ['Roll back to the revision before.', '回滚到之前的版本。'],
  'undo.config.rollback': [
    'Reload: the files still hold the config from before.',
    '重新加载：配置文件中仍是之前的配置。'
  ]
} as const
