/** The services and back-ends that one generation of the app is built with. */
import type { FastifyInstance } from 'fastify'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Failures } from '../observability/failures.ts'
import type { Running } from './hooks/access-log.ts'
import type { Ledger } from '../observability/audit/entry.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Services } from '../services/services.ts'
import type { ShedLog } from './shed-log.ts'
import type { OperatorsMaintenance } from './hooks/maintenance.ts'
import type { BindStream } from './routes/bound-stream.ts'

export type GenerationServices = Pick<
  Services,
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
> & {
  /** Keeps requests for `console-gateway why`; undefined in dry runs. */
  readonly failures?: Failures
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
  /** Called with the app before anything is added to it: for dry runs. */
  readonly watch?: (app: FastifyInstance) => void
}
