/** The possible error codes of an operation. A code that is missing here is a type error. */
import type { ErrorCode } from '../errors.ts'
import type { EndpointName } from '../config/schema/own-endpoints.ts'
import type { RouteConfig } from '../config/schema/routes.ts'

/** The facts that decide the codes of an operation. */
export interface OperationFacts {
  /** One of the gateway's own endpoints; undefined for a route. */
  readonly endpoint?: EndpointName
  readonly access: RouteConfig['access']
  readonly isUnsafe: boolean
  /** Whether a GET may be an upgrade to WebSocket. */
  readonly takesUpgrades: boolean
  readonly asksUpstream: boolean
  /** Whether one of its upstreams gets credentials of one source only. */
  readonly namesSource: boolean
  /** Whether the upstream's response is parsed, and not passed byte for byte. */
  readonly isRead: boolean
  readonly isStrict: boolean
  /** Whether the limits bound its requests in flight. */
  readonly isBounded: boolean
  /** Whether refused sign-ins are errors. */
  readonly refusesSignIn: boolean
  /** The further outcomes of a refused sign-in that config tells apart, where they are errors. */
  readonly refusalKinds: readonly string[]
  /** Whether a sign-in beyond `session.perUser` is refused. */
  readonly refusesSessions: boolean
}

type Occurs = (facts: OperationFacts) => boolean

const always: Occurs = () => true
/** The codes of other listeners, and of requests without an operation. */
const never: Occurs = () => false
const withSession: Occurs = ({ access }) => access !== 'public'
const withBody: Occurs = ({ isUnsafe }) => isUnsafe
const withUpstream: Occurs = ({ asksUpstream }) => asksUpstream
const withShape: Occurs = ({ isRead }) => isRead
const isLogin: Occurs = ({ endpoint }) => endpoint === 'login'
const opensOrCloses: Occurs = ({ endpoint }) => endpoint === 'login' || endpoint === 'logout'

const occurrences: Readonly<Record<ErrorCode, Occurs>> = {
  'session.none': withSession,
  'session.unknown': withSession,
  'session.idle': withSession,
  'session.absolute': withSession,
  'session.revoked': withSession,
  'session.replaced': withSession,
  'session.upstream': withSession,
  'login.too-many': facts => isLogin(facts) && facts.refusesSessions,
  'login.refused': facts => isLogin(facts) && facts.refusesSignIn,
  'login.challenge': facts => isLogin(facts) && facts.refusalKinds.includes('challenge'),
  'login.blocked': facts => isLogin(facts) && facts.refusalKinds.includes('blocked'),
  'login.expired-password': facts =>
    isLogin(facts) && facts.refusalKinds.includes('expired-password'),
  'login.locked': isLogin,
  'route.credential': facts => withSession(facts) && facts.namesSource,
  'route.forbidden': ({ access }) => typeof access === 'object',
  'ops.host': never,
  'ops.secret': never,
  'ops.session': never,
  'ops.role': never,
  'ops.origin': never,
  'ops.ledger': never,
  'ops.redis': never,
  'origin.refused': ({ isUnsafe, endpoint, takesUpgrades }) =>
    isUnsafe || endpoint === 'logout' || takesUpgrades,
  'route.unknown': never,
  'route.method': never,
  'request.malformed': always,
  'request.path': always,
  'request.timeout': always,
  'request.too-large': withBody,
  'request.uri-too-long': always,
  'request.type': withBody,
  'request.expectation': always,
  'request.headers': always,
  'limit.exceeded': always,
  'upstream.refused': withUpstream,
  'upstream.reset': withUpstream,
  'upstream.invalid': withUpstream,
  'upstream.redirect': withUpstream,
  'upstream.error': withUpstream,
  'shape.not-json': withShape,
  'shape.too-large': withShape,
  'contract.broken': ({ isStrict }) => isStrict,
  'session.unavailable': facts => withSession(facts) || opensOrCloses(facts),
  'maintenance': facts => facts.endpoint === undefined || isLogin(facts),
  'overloaded': facts => withUpstream(facts) || isLogin(facts) || facts.isBounded,
  'gateway.stopping': always,
  'gateway.fault': always,
  'upstream.timeout': withUpstream,
  'upstream.timeout.connect': withUpstream,
  'upstream.timeout.idle': withUpstream,
  'upstream.timeout.total': withUpstream
}

/** In the order of the code table. */
export function errorsOf(facts: OperationFacts): ErrorCode[] {
  return (Object.keys(occurrences) as ErrorCode[]).filter(code => occurrences[code](facts))
}
