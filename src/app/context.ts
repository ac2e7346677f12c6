/** The context that the hooks and endpoints of one generation share. */
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import type { Config } from '../config/schema/config.ts'
import { mountOf } from '../config/schema/resolved.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { type TokenNames, tokenNamesOf } from '../proxy/token-names.ts'
import { createForwardedHost, type ForwardedHost } from './hooks/forwarded-for.ts'
import { createSealedCookies, type SealedCookiesOf } from './routes/sealed-cookies.ts'
import { sessionCookie, type SessionCookie } from './hooks/session.ts'
import { createSources } from './credential-sources.ts'
import { compileEndpointAnswers, type EndpointAnswers } from './endpoint-answers.ts'
import { type AppMetrics, createAppMetrics } from './app-metrics.ts'
import type { GenerationServices } from './generation-services.ts'

export interface AppContext {
  readonly config: Config
  readonly services: GenerationServices
  readonly metrics: AppMetrics
  readonly envelope: Envelope
  readonly answers: EndpointAnswers
  readonly cookie: SessionCookie
  readonly tokenNames: TokenNames
  readonly sources: readonly CredentialSource[]
  readonly sealedCookies: SealedCookiesOf
  /** In lower case, as they are compared. */
  readonly hosts: readonly string[]
  readonly forwardedHost: ForwardedHost
  /** `server.mount`, the prefix of every public path. */
  readonly mount: string
}

export function createContext(config: Config, services: GenerationServices): AppContext {
  const { server, envelope, session } = config.gateway
  const cookie = sessionCookie(session.cookie)
  const hosts = server.hosts.map(host => host.toLowerCase())
  return {
    config,
    services,
    metrics: createAppMetrics(services.metrics, services.rates),
    envelope: createEnvelope(envelope),
    answers: compileEndpointAnswers(config),
    cookie,
    sealedCookies: createSealedCookies(config, cookie, services.secrets),
    tokenNames: tokenNamesOf(envelope),
    sources: services.sources ?? createSources(config, services),
    hosts,
    forwardedHost: createForwardedHost(hosts, server.ports),
    mount: mountOf(config)
  }
}
