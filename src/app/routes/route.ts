/** A route as the app answers it, compiled from config: of a back-end, of parts, or of the profile. */
import type { QueryMaps } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import type { Rewrite } from '../../proxy/path.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Live } from '../../session/types.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import type { Access } from '../hooks/context.ts'
import type { ShapeBody } from './compile-common.ts'
import type { Parts } from './parts.ts'

interface CommonRoute {
  readonly name: string
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: Access
  /** Whether a call keeps the session from going idle. */
  readonly touch: boolean
  /** Without it, that of the gateway. */
  readonly envelope?: Envelope
  readonly errorStatus: 'own' | 'ok'
}

export interface ForwardedRoute extends CommonRoute {
  readonly target: Target
  /** Without it, bodies pass byte for byte. */
  readonly shaping?: Shaping
}

/** Without an upstream: parts alone, the profile of the session, or an answer of config. */
export interface OwnRoute extends CommonRoute {
  readonly target?: undefined
  readonly status: number
  /** Parts are added to it, before it is shaped. */
  readonly initialValue: (live: Live | undefined) => unknown
  readonly shaping: Pick<Shaping, 'shape' | 'parts'>
}

export type Route = ForwardedRoute | OwnRoute

/** The upstream of a route, what it gets of a request, and what the client gets of its response. */
export interface Target {
  /** The route in config, or the profile, which has some of the same keys. */
  readonly written: Partial<RouteConfig>
  readonly upstream: Upstream
  readonly upstreamName: string
  /** From public paths to the upstream's, and back. */
  readonly rewrite: Rewrite
  /** The longest wait for a byte of the response. */
  readonly timeoutMs: number
  readonly maxBody: number
  /** Whether the upstream is called with GET and without a body, whatever the client's method. */
  readonly isReadOnly?: boolean
  /** Without it the query passes byte for byte. */
  readonly query?: QueryMaps | undefined
  /** Without it the request's body passes byte for byte. */
  readonly body?: BodyMapping | undefined
  /** Sees JSON that passes byte for byte, where it was small enough to be collected. */
  readonly observe?: (bytes: Buffer, headers: UpstreamResponse['headers']) => void
}

export interface Shaping {
  readonly shape: ShapeBody
  readonly shapeNothing: ShapeBody
  /** Bytes of the body, as it comes and unpacked. */
  readonly maxShaped: number
  /** Told of a label of the body, such as its charset, that is wrong. */
  readonly onIgnored: (label: string) => void
  /** A larger one is refused with 502, or passes unshaped, byte for byte. */
  readonly tooLarge: 'refuse' | 'pass'
  /** Responses of other upstreams that are added before it is shaped. */
  readonly parts?: Parts
}
