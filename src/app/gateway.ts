/** The services and settings of one generation, which its hooks, endpoints and routes share. */
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema/config.ts'
import type { Closing } from '../config/schema/maintenance.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import type { Failures } from '../observability/failures.ts'
import type { TokenNames } from '../proxy/token-names.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Services } from '../services/services.ts'
import type { Answer } from '../shaping/answer.ts'
import type { Envelope } from '../shaping/envelope.ts'
import type { Modules } from '../shaping/module.ts'
import type { AppMetrics } from './app-metrics.ts'
import type { CountedAddress } from './hooks/address.ts'
import type { ForwardedHost } from './hooks/forwarded-for.ts'
import type { SessionCookie } from './hooks/session.ts'
import type { BindStream } from './routes/bound-stream.ts'
import type { SealedCookiesOf } from './routes/sealed-cookies.ts'
import type { ShedLog } from './shed-log.ts'

type Shared =
  | 'log'
  | 'sessions'
  | 'secrets'
  | 'counts'
  | 'highestUse'
  | 'lockouts'
  | 'inFlight'
  | 'metrics'
  | 'rates'
  | 'drift'
  | 'tracer'

/** The services and back-ends that a generation is built with. They outlive it. */
export interface GatewayServices extends Pick<Services, Shared> {
  /** Keeps requests for `console-gateway why`. */
  readonly failures: Pick<Failures, 'add'>
  /** By its name in `routes.yaml`. */
  readonly upstream: (name: string, config: UpstreamConfig) => Upstream
  readonly running: Running
  /** Counts what is refused because of overload. */
  readonly shed: Pick<ShedLog, 'count'>
  /** Binds a live stream to its session. */
  readonly bindStream: BindStream
  /** That of operators; undefined in dry runs, where nobody begins one. */
  readonly maintenance?: OperatorsMaintenance
  /** Undefined where config has no audit ledger. */
  readonly ledger?: Ledger | undefined
  /** Replaces the sources that config names. */
  readonly sources?: readonly CredentialSource[]
  /** Called with the app before anything is added to it: for plugins. */
  readonly watch?: ((app: FastifyInstance) => void) | undefined
  /** Called with the value that a shape gets: for dry runs. */
  readonly watchShape?: (name: string, value: unknown) => void
}

/** Registers requests and WebSockets while they run. */
interface Running {
  /**
   * @param member is destroyed where it may run no longer
   * @returns what to call when it is over
   */
  readonly begin: (member: { readonly destroy: () => unknown }) => () => void
}

/** The maintenances that operators began; generations come and go, this stays. */
export interface OperatorsMaintenance {
  /** They add up. */
  readonly current: ReadonlyArray<Closing>
  /** An end is judged by this clock, which replicas share. */
  readonly now: () => number
}

export interface Gateway extends GatewayServices {
  readonly config: Config
  readonly counters: AppMetrics
  readonly envelope: Envelope
  /** Own code, by its file in config. */
  readonly modules: Modules
  /** That config writes for the gateway's own endpoints; the others have the usual one. */
  readonly answers: Readonly<Record<AnsweredEndpoint, Answer | undefined>>
  readonly cookie: SessionCookie
  readonly tokenNames: TokenNames
  /** In the order of the config. */
  readonly sources: readonly CredentialSource[]
  readonly sealedCookies: SealedCookiesOf
  readonly forwardedHost: ForwardedHost
  /** A client's address, as limits count it. */
  readonly addressOf: CountedAddress
  /** `server.mount`, the prefix of every public path. */
  readonly mount: string
}

type AnsweredEndpoint = 'login' | 'logout' | 'profile' | 'refresh'

declare module 'fastify' {
  interface FastifyInstance {
    gateway: Gateway
  }
}
