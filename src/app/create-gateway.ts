/** Builds what one generation shares. */
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import { sourceName } from '../config/schema/gateway.ts'
import { mountOf } from '../config/schema/resolved.ts'
import { credentialOf } from '../config/schema/routes.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUsersFile } from '../login/users-file.ts'
import { tokenNamesOf } from '../proxy/token-names.ts'
import { createAnswer } from '../shaping/answer.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import type { Modules } from '../shaping/module.ts'
import { createAppMetrics } from './app-metrics.ts'
import type { Gateway, GatewayServices } from './gateway.ts'
import { createCountedAddress } from './hooks/address.ts'
import { withOwnCode } from './own-code.ts'
import { createForwardedHost } from './hooks/forwarded-for.ts'
import { sessionCookie } from './hooks/session.ts'
import { createSealedCookies } from './routes/sealed-cookies.ts'

export function createGateway(config: Config, given: GatewayServices, modules: Modules): Gateway {
  const services = { ...given, upstream: withOwnCode(given.upstream, modules) }
  const { server, envelope, session } = config.gateway
  const cookie = sessionCookie(session.cookie)
  const { login, logout, profile, refresh } = config.routes.endpoints
  const answerOf = (written: AnswerConfig | undefined) => written && createAnswer(config, written)
  return {
    ...services,
    config,
    counters: createAppMetrics(services.metrics, services.rates),
    envelope: createEnvelope(envelope),
    modules,
    answers: {
      login: answerOf(login.answer),
      logout: answerOf(logout.answer),
      profile: answerOf(profile.answer),
      refresh: answerOf(refresh?.answer)
    },
    cookie,
    tokenNames: tokenNamesOf(envelope),
    sources: services.sources ?? createSources(config, services),
    sealedCookies: createSealedCookies(config, cookie, services.secrets),
    forwardedHost: createForwardedHost(server.hosts, server.ports),
    addressOf: createCountedAddress(config.limits.ipv6Prefix),
    mount: mountOf(config)
  }
}

function createSources(
  { gateway, routes, users }: Config,
  { upstream, log }: GatewayServices
): CredentialSource[] {
  return gateway.login.sources.map(source => {
    const name = sourceName(source)
    if (source.kind === 'users-file') {
      return createUsersFile(name, users[source.file] ?? { users: {} }, source.decides)
    }
    const config = routes.upstreams[source.upstream]
    if (config === undefined) throw new Error(`there is no upstream "${source.upstream}"`)
    const { as, scheme } = credentialOf(config.credential)
    return createUpstreamLogin({
      name,
      config: source,
      send: upstream(source.upstream, config).fetchWhole,
      credentialStyle: as,
      credentialScheme: scheme,
      onFailed: err =>
        log.warn(
          { event: 'logout.source', source: name, err },
          'a sign-in failed after the back-end’s, and the back-end’s session could not be ended'
        )
    })
  })
}
