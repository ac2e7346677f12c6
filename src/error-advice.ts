/**
 * Advice to operators for each error code: for `console-gateway why` and the ops page. Keys of the
 * config stand in backticks, as the reference lists them.
 */
import type { ErrorCode } from './errors.ts'

const atUpstream = (text: string) =>
  `${text} Look at the upstream’s own log at this time. \`console-gateway status\` shows its addresses.`
const clientFault = 'The client has to send it differently; the gateway needs no change.'
const longer = (key: string) =>
  `Expected: the user signs in again. If that comes too early, raise \`${key}\`.`

export const errorAdvice: Readonly<Record<ErrorCode, string>> = {
  'session.none':
    'The request had no valid session cookie: the user has not signed in, or the browser ' +
    'did not send the cookie (other host, plain http with a secure cookie, blocked by ' +
    'SameSite).',
  'session.unknown':
    'The store does not know the session: it ended more than ten minutes ago, Redis lost ' +
    'its data, or the cookie is of another installation. The user signs in again.',
  'session.idle': longer('session.idle'),
  'session.absolute': longer('session.absolute'),
  'session.revoked':
    'An operator closed the session, or the user signed out elsewhere, was disabled or ' +
    'changed. The log has the event, with the same session.',
  'session.replaced':
    'A newer sign-in took its place: raise `session.perUser.max` if users need more sessions.',
  'session.upstream':
    'The back-end refused to renew its token, so the session ended. Look at the ' +
    'back-end’s log, and at `login.sources[].refresh`.',
  'login.too-many':
    'The user has as many sessions as `session.perUser.max` allows: close one with ' +
    '`console-gateway sessions close`, or set `session.perUser.over: evict-oldest`.',
  'login.refused':
    'No credential source accepted the password. For a users file: `console-gateway ' +
    'users`. For a back-end: compare `login.sources[].success` and ' +
    '`login.sources[].refused` with its response.',
  'login.locked':
    'Too many failures: it ends by itself. `console-gateway lockouts list` shows the ' +
    'lock, `console-gateway lockouts lift` ends it now.',
  'login.challenge': 'The back-end asked for a captcha or another proof: the user tries again.',
  'login.blocked': 'The back-end has blocked the account: unblock it there.',
  'login.expired-password': 'The user has to change the password in the back-end first.',
  'route.credential':
    'The upstream takes only sessions of one credential source (`from` in ' +
    '`upstreams.NAME.credential`), and this user signed in at another one.',
  'route.forbidden':
    'The user has none of the roles in `routes.NAME.access`. Give the user the role, or ' +
    'change the list.',
  'ops.host': 'Add the host name to `ops.hosts`, or use the address.',
  'ops.secret': 'Send `ops.secret` in the header `Authorization: Bearer SECRET`.',
  'ops.session': 'Sign in to the operators’ page again.',
  'ops.role':
    'Give the user the role that `ops.role` names, at a source that `ops.sources` allows.',
  'ops.origin': 'Open the page at the address of this listener.',
  'ops.ledger': 'The audit ledger could not be written: look at the disk and at `audit.folder`.',
  'ops.redis': 'Redis, which replicas share, did not answer: try again when it is back.',
  'origin.refused':
    'A page of another origin sent it. If that origin is yours, add it to ' +
    '`server.origins`; behind a proxy that ends TLS, add the proxy to ' +
    '`server.trustedProxies`.',
  'route.unknown':
    'No route has this path: `console-gateway explain METHOD PATH` shows what decides. ' +
    'Add a route or an alias in routes.yaml.',
  'route.method': 'Add the method to `routes.NAME.methods`, if it is meant to pass.',
  'request.malformed': clientFault,
  'request.path':
    'The path has an encoding that two programs may read differently. The client has to ' +
    'send it differently; the gateway needs no change.',
  'request.timeout':
    'The client sent its request, or read its response, too slowly: ' +
    '`server.requestTimeout`, 1 KiB a second and `server.idleTimeout` bound that.',
  'request.too-large':
    'Raise `sizes.body` in limits.yaml, or `routes.NAME.maxBody`, if it is legitimate.',
  'request.uri-too-long': 'Raise `sizes.url` in limits.yaml, if it is legitimate.',
  'request.type': clientFault,
  'request.expectation': clientFault,
  'request.headers':
    'Raise `sizes.headerCount` in limits.yaml, or let the client send fewer cookies.',
  'limit.exceeded':
    'Expected, if the number is right. `console-gateway limits` prints how close callers ' +
    'come to it; `console-gateway limits show` shows one caller, and `console-gateway ' +
    'limits reset` resets it.',
  'upstream.refused':
    'Nothing listens at the address, its name cannot be resolved, or TLS failed: check ' +
    '`upstreams.NAME.url`, and that it runs. Each attempt names the reason.',
  'upstream.reset': atUpstream('The back-end closed the connection in the middle.'),
  'upstream.invalid':
    'The back-end broke HTTP, or its response cannot be used here: the reason is given above, ' +
    'and in the log line of the request.',
  'upstream.redirect':
    'The back-end redirects to another origin: correct the path, or set ' +
    '`routes.NAME.redirects: pass`.',
  'upstream.error': atUpstream('The back-end answered with an error page.'),
  'shape.not-json': 'The back-end answered something else than JSON: look at it by itself.',
  'shape.too-large':
    'Raise `routes.NAME.maxShaped`, or `sizes.shape` in limits.yaml, or ask for less.',
  'contract.broken':
    'The response does not fit the route’s contract: the log’s drift events name the member.',
  'session.unavailable':
    'Redis did not answer. Nobody is signed out; `console-gateway status` shows since when.',
  'maintenance': 'Expected: `maintenance` in routes.yaml, or set by an operator, closes the route.',
  'overloaded':
    'More requests than connections, or than the named bound: find the slow upstream ' +
    'first, then raise `upstreams.NAME.connections`, `upstreams.NAME.queue` or ' +
    '`upstreams.NAME.queueTimeout`, or the named bound.',
  'gateway.stopping': 'Expected while a process stops: the client tries again.',
  'gateway.fault': 'A fault of the gateway: the log has the stack. Please report it.',
  'upstream.timeout': atUpstream(
    'No first byte within `routes.NAME.timeout` (`upstreams.NAME.responseTimeout`).'
  ),
  'upstream.timeout.connect':
    'No connection within `upstreams.NAME.connectTimeout`: firewall, wrong address, or a ' +
    'machine that is down.',
  'upstream.timeout.idle': atUpstream('The response stood still for `upstreams.NAME.idleTimeout`.'),
  'upstream.timeout.total': 'The response took longer than `upstreams.NAME.totalTimeout`.'
}
