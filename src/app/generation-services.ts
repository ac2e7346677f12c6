/** What an app is built with. */
import type { FastifyInstance } from 'fastify'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Running } from './hooks/access-log.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Services } from '../services/services.ts'
import type { BindStream } from './endpoints/bound-stream.ts'

/** What one generation is built with. */
export type GenerationServices = Pick<
  Services,
  | 'log'
  | 'sessions'
  | 'secrets'
  | 'counters'
  | 'leases'
  | 'lockouts'
  | 'inFlight'
  | 'expressions'
  | 'metrics'
  | 'drift'
> & {
  /** By its name in `routes.yaml`. */
  readonly upstream: (name: string, config: UpstreamConfig) => Upstream
  readonly running: Running
  /** Binds a live stream to its session. */
  readonly bindStream: BindStream
  /** In the place of those that config names. */
  readonly sources?: readonly CredentialSource[]
  /** Sees the app before anything is added to it: for tools that look on. */
  readonly watch?: (app: FastifyInstance) => void
}
