/**
 * Advice to operators for each error code, in English and Chinese: for `console-gateway why` and
 * the ops page. Keys of the config stand in backticks, as the reference lists them.
 */
import type { ErrorCode } from './errors.ts'

export interface Advice {
  readonly en: string
  readonly zh: string
}

const advise = (en: string, zh: string): Advice => ({ en, zh })

const lookAtUpstream = advise(
  ' Look at the upstream’s own log at this time. `console-gateway status` shows its addresses.',
  '请查看后端此刻的日志；`console-gateway status` 显示其地址。'
)
const atUpstream = (en: string, zh: string) =>
  advise(en + lookAtUpstream.en, zh + lookAtUpstream.zh)
const clientFault = advise(
  'The client has to send it differently; the gateway needs no change.',
  '须由客户端更改其请求，网关无需改动。'
)
const longer = (key: string) =>
  advise(
    `Expected: the user signs in again. If that comes too early, raise \`${key}\`.`,
    `属正常情况：用户重新登录即可。若过早发生，请调大 \`${key}\`。`
  )

export const errorAdvice: Readonly<Record<ErrorCode, Advice>> = {
  'session.none': advise(
    'The request had no valid session cookie: the user has not signed in, or the browser did not ' +
      'send the cookie (other host, plain http with a secure cookie, blocked by SameSite).',
    '请求没有有效的会话 Cookie：用户未登录，或浏览器未发送（主机不同、http 下的安全 Cookie、SameSite 限制）。'
  ),
  'session.unknown': advise(
    'The store does not know the session: it ended more than ten minutes ago, Redis lost its ' +
      'data, or the cookie is of another installation. The user signs in again.',
    '存储中没有此会话：已结束超过十分钟、Redis 丢失了数据，或 Cookie 来自另一套系统。用户重新登录即可。'
  ),
  'session.idle': longer('session.idle'),
  'session.absolute': longer('session.absolute'),
  'session.revoked': advise(
    'An operator closed the session, or the user signed out elsewhere, was disabled or changed. ' +
      'The log has the event, with the same session.',
    '运维人员关闭了会话，或用户在别处退出、被禁用或被修改。日志中有同一会话的事件。'
  ),
  'session.replaced': advise(
    'A newer sign-in took its place: raise `session.perUser.max` if users need more sessions.',
    '已被新的登录取代：若用户需要更多会话，请调大 `session.perUser.max`。'
  ),
  'session.upstream': advise(
    'The back-end refused to renew its token, so the session ended. Look at the back-end’s log, ' +
      'and at `login.sources[].refresh`.',
    '后端拒绝续期令牌，会话因此结束。请查看后端日志和 `login.sources[].refresh`。'
  ),
  'login.too-many': advise(
    'The user has as many sessions as `session.perUser.max` allows: close one with ' +
      '`console-gateway sessions close`, or set `session.perUser.over: evict-oldest`.',
    '用户的会话数已达 `session.perUser.max`：用 `console-gateway sessions close` ' +
      '关闭一个，或设置 `session.perUser.over: evict-oldest`。'
  ),
  'login.refused': advise(
    'No credential source accepted the password. For a users file: `console-gateway users`. For ' +
      'a back-end: compare `login.sources[].success` ' +
      'and `login.sources[].refused` with its response.',
    '没有凭据源接受此密码。用户文件：`console-gateway users`；后端：将 ' +
      '`login.sources[].success` 和 `login.sources[].refused` 与其响应比较。'
  ),
  'login.locked': advise(
    'Too many failures: it ends by itself. `console-gateway lockouts list` shows the lock, ' +
      '`console-gateway lockouts lift` ends it now.',
    '失败次数过多，会自行解除。`console-gateway lockouts list` 显示锁定，`console-gateway lockouts lift` 立即解除。'
  ),
  'login.challenge': advise(
    'The back-end asked for a captcha or another proof: the user tries again.',
    '后端要求验证码或其他验证：请用户重试。'
  ),
  'login.blocked': advise(
    'The back-end has blocked the account: unblock it there.',
    '后端已冻结该账户：请在后端解冻。'
  ),
  'login.expired-password': advise(
    'The user has to change the password in the back-end first.',
    '用户须先在后端修改密码。'
  ),
  'route.credential': advise(
    'The upstream takes only sessions of one credential source (`from` in ' +
      '`upstreams.NAME.credential`), and this user signed in at another one.',
    '该后端只接受某一凭据源的会话（`upstreams.NAME.credential` 的 from），而此用户在其他凭据源登录。'
  ),
  'route.forbidden': advise(
    'The user has none of the roles in `routes.NAME.access`. Give the user the role, or ' +
      'change the list.',
    '用户没有 `routes.NAME.access` 中的任何角色。请授予角色，或修改该列表。'
  ),
  'ops.host': advise(
    'Add the host name to `ops.hosts`, or use the address.',
    '请将主机名加入 `ops.hosts`，或使用 IP 地址。'
  ),
  'ops.secret': advise(
    'Send `ops.secret` in the header `Authorization: Bearer SECRET`.',
    '请以 `Authorization: Bearer SECRET` 发送 `ops.secret`。'
  ),
  'ops.session': advise('Sign in to the operators’ page again.', '请重新登录运维页面。'),
  'ops.role': advise(
    'Give the user the role that `ops.role` names, at a source that `ops.sources` allows.',
    '请在 `ops.sources` 允许的凭据源中授予用户 `ops.role` 所指的角色。'
  ),
  'ops.origin': advise(
    'Open the page at the address of this listener.',
    '请用本监听地址打开页面。'
  ),
  'ops.ledger': advise(
    'The audit ledger could not be written: look at the disk and at `audit.folder`.',
    '审计日志无法写入：请检查磁盘和 `audit.folder`。'
  ),
  'ops.redis': advise(
    'Redis, which replicas share, did not answer: try again when it is back.',
    '各副本共用的 Redis 没有应答：恢复后请重试。'
  ),
  'ops.held': advise(
    'A rollback of all replicas was under way: try again.',
    '全部副本的回滚正在进行：请重试。'
  ),
  'origin.refused': advise(
    'A page of another origin sent it. If that origin is yours, add it to `server.origins`; ' +
      'behind a proxy that ends TLS, add the proxy to `server.trustedProxies`.',
    '请求来自其他源的页面。若该源属于您，请加入 `server.origins`；若前面有终止 TLS 的代理，请将其加入 `server.trustedProxies`。'
  ),
  'route.unknown': advise(
    'No route has this path: `console-gateway explain METHOD PATH` shows what decides. Add a ' +
      'route or an alias in routes.yaml.',
    '没有此路径的路由：`console-gateway explain METHOD PATH` 显示判断过程。请在 routes.yaml 中添加路由或别名。'
  ),
  'route.method': advise(
    'Add the method to `routes.NAME.methods`, if it is meant to pass.',
    '若应放行，请将该方法加入 `routes.NAME.methods`。'
  ),
  'request.malformed': clientFault,
  'request.path': advise(
    `The path has an encoding that two programs may read differently. ${clientFault.en}`,
    `路径的编码可能被不同程序作不同解读。${clientFault.zh}`
  ),
  'request.timeout': advise(
    'The client sent its request, or read its response, too slowly: `server.requestTimeout` and ' +
      '`server.idleTimeout` bound that.',
    '客户端发送请求或读取响应过慢：由 `server.requestTimeout` 和 `server.idleTimeout` 限定。'
  ),
  'request.too-large': advise(
    'Raise `sizes.body` in limits.yaml, or `routes.NAME.maxBody`, if it is legitimate.',
    '若属正当请求，请调大 limits.yaml 中的 `sizes.body` 或 `routes.NAME.maxBody`。'
  ),
  'request.uri-too-long': advise(
    'Raise `sizes.url` in limits.yaml, if it is legitimate.',
    '若属正当请求，请调大 limits.yaml 中的 `sizes.url`。'
  ),
  'request.type': clientFault,
  'request.expectation': clientFault,
  'request.headers': advise(
    'Raise `sizes.headerCount` in limits.yaml, or let the client send fewer cookies.',
    '请调大 limits.yaml 中的 `sizes.headerCount`，或让客户端减少 Cookie。'
  ),
  'limit.exceeded': advise(
    'Expected, if the number is right. `console-gateway limits` prints how close callers come to ' +
      'it; `console-gateway limits show` shows one caller, and `console-gateway limits reset` ' +
      'resets it.',
    '若数值合适则属正常。`console-gateway limits` ' +
      '显示各调用者的用量；`console-gateway limits show` 查看某个调用者，' +
      '`console-gateway limits reset` 将其重置。'
  ),
  'upstream.refused': advise(
    'Nothing listens at the address, its name cannot be resolved, or TLS failed: check ' +
      '`upstreams.NAME.url`, and that it runs. Each attempt names the reason.',
    '该地址无人监听、名称无法解析或 TLS 失败：请检查 `upstreams.NAME.url` 及后端是否运行。每次尝试都写明了原因。'
  ),
  'upstream.reset': atUpstream(
    'The back-end closed the connection in the middle.',
    '后端中途关闭了连接。'
  ),
  'upstream.invalid': advise(
    'The back-end broke HTTP, or its response cannot be used here; the log line of the request ' +
      'has the reason.',
    '后端违反了 HTTP 规范，或其响应在此无法使用；请求的日志行写明了原因。'
  ),
  'upstream.redirect': advise(
    'The back-end redirects to another origin: correct ' +
      'the path, or set `routes.NAME.redirects: pass`.',
    '后端重定向到其他源：请更正路径，或设置 `routes.NAME.redirects: pass`。'
  ),
  'upstream.error': atUpstream('The back-end answered with an error page.', '后端返回了错误页面。'),
  'shape.not-json': advise(
    'The back-end answered something else than JSON: look at it by itself.',
    '后端返回的不是 JSON：请直接查看其响应。'
  ),
  'shape.too-large': advise(
    'Raise `routes.NAME.maxShaped`, or `sizes.shape` in limits.yaml, or ask for less.',
    '请调大 `routes.NAME.maxShaped` 或 limits.yaml 中的 `sizes.shape`，或减少请求的数据。'
  ),
  'contract.broken': advise(
    'The response does not fit the route’s contract: the log’s drift events name the member.',
    '响应不符合路由的契约：日志中的 drift 事件写明了成员。'
  ),
  'session.unavailable': advise(
    'Redis did not answer. Nobody is signed out; `console-gateway status` shows since when.',
    'Redis 没有应答。无人因此被登出；`console-gateway status` 显示从何时开始。'
  ),
  'maintenance': advise(
    'Expected: `maintenance` in routes.yaml, or set by an operator, closes the route.',
    '属正常情况：routes.yaml 中的 `maintenance` 或运维人员关闭了该路由。'
  ),
  'overloaded': advise(
    'More requests than connections, or than the named bound: find the slow upstream first, then ' +
      'raise `upstreams.NAME.connections`, `upstreams.NAME.queue` or ' +
      '`upstreams.NAME.queueTimeout`, or the named bound.',
    '请求数超过连接数或所指的上限：先找出缓慢的后端，再调大 `upstreams.NAME.connections`、' +
      '`upstreams.NAME.queue`、`upstreams.NAME.queueTimeout` 或所指的上限。'
  ),
  'upstream.unavailable': atUpstream(
    'All addresses are left out by their breaker or health check.',
    '所有地址均因熔断或健康检查而被排除。'
  ),
  'gateway.stopping': advise(
    'Expected while a process stops: the client tries again.',
    '进程停止期间属正常情况：客户端会重试。'
  ),
  'gateway.fault': advise(
    'A fault of the gateway: the log has the stack. Please report it.',
    '网关自身的故障：日志中有堆栈，请报告。'
  ),
  'upstream.timeout': atUpstream(
    'No first byte within `routes.NAME.timeout` (`upstreams.NAME.responseTimeout`).',
    '在 `routes.NAME.timeout`（`upstreams.NAME.responseTimeout`）内没有收到首字节。'
  ),
  'upstream.timeout.connect': advise(
    'No connection within `upstreams.NAME.connectTimeout`: firewall, wrong address, or a machine ' +
      'that is down.',
    '在 `upstreams.NAME.connectTimeout` 内未能连接：防火墙、地址错误或机器宕机。'
  ),
  'upstream.timeout.idle': atUpstream(
    'The response stood still for `upstreams.NAME.idleTimeout`.',
    '响应停顿超过 `upstreams.NAME.idleTimeout`。'
  ),
  'upstream.timeout.total': advise(
    'The response took longer than `upstreams.NAME.totalTimeout`.',
    '响应耗时超过 `upstreams.NAME.totalTimeout`。'
  )
}
