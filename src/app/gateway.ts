/** The services and settings of one generation, which its hooks, endpoints and routes share. */
import { Readable } from 'node:stream'
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import type { SourceConfig } from '../config/schema/gateway.ts'
import { headerName } from '../config/schema/primitives.ts'
import { credentialOf, type RoutesConfig, type UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { createUsersFile } from '../login/file-users.ts'
import { createLdap } from '../login/ldap/source.ts'
import { createMint } from '../login/minted-token.ts'
import { createTokenReader } from '../login/oidc/machines.ts'
import { providerOf } from '../login/oidc/provider.ts'
import { OidcSource } from '../login/oidc/source.ts'
import { createTokenRefresh } from '../login/token-refresh.ts'
import { createTokenExchange, createUpstreamLogin } from '../login/upstream-login.ts'
import { tokenNamesOf } from '../proxy/query.ts'
import type { Call } from '../proxy/receiver.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Services } from '../services/services.ts'
import { credentialIn } from '../session/credentials.ts'
import { type Credential, identityKey, type Session } from '../session/types.ts'
import { createAnswer, fillUser } from '../shaping/answer.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import type { Modules, OwnCode } from '../shaping/module.ts'
import { createForwardedHost } from './hooks/address.ts'
import type { BindStream } from './hooks/context.ts'
import { createCounters, type ShedLog } from './hooks/metrics.ts'
import {
  createSealedCookies,
  createSessionCookieReader,
  sessionCookie
} from './hooks/session-cookie.ts'

export interface GatewayServices extends Omit<Services, 'failures'> {
  readonly failures: Pick<Services['failures'], 'add'>
  readonly upstream: (name: string, config: UpstreamConfig) => Upstream
  /** @param member is destroyed where it may run no longer @returns ends the registration */
  readonly running: (member: { readonly destroy: () => unknown }) => () => void
  readonly shed: ShedLog
  readonly bindStream: BindStream
  /** Replaces the sources that config names. */
  readonly sources?: readonly CredentialSource[]
  /** Called with the value that a shape gets: for dry runs. */
  readonly watchShape?: (name: string, value: unknown) => void
}

export type Gateway = ReturnType<typeof createGateway>

const ambiguous = 'sign-in refused: several entries of the directory have this user name'

declare module 'fastify' {
  interface FastifyInstance {
    gateway: Gateway
  }
}

export function createGateway(config: Config, given: GatewayServices, modules: Modules) {
  const services = { ...given, upstream: withOwnCode(given.upstream, modules, config.routes) }
  const { server, envelope, session } = config.gateway
  const cookie = sessionCookie(session.cookie)
  const { login, logout, profile, refresh } = config.routes.endpoints
  const { log, sessions } = services
  // In the order of the config.
  const written = Object.entries(config.gateway.login.sources)
  const createAll = () => written.map(each => createSource(...each, config, services))
  const sources: readonly CredentialSource[] = services.sources ?? createAll()
  const tokens = createBackEndTokens(config, services.upstream)
  const { exchanges } = tokens
  const answerOf = (answer: AnswerConfig | undefined) => answer && createAnswer(config, answer)
  return {
    ...services,
    config,
    counters: createCounters(services.metrics),
    envelope: createEnvelope(envelope),
    modules,
    answers: {
      login: answerOf(login.answer),
      logout: answerOf(logout.answer),
      profile: answerOf(profile.answer),
      refresh: answerOf(refresh?.answer)
    },
    cookie,
    tokenIn: createTokenReader(config.gateway.login.sources, services.sessions),
    sessionKeyIn: createSessionCookieReader(cookie.name, services.secrets),
    tokenNames: tokenNamesOf(envelope),
    sources,
    ...tokens,
    tokenRefresh: createTokenRefresh({ sessions, sources, exchanges, log }),
    sealedCookies: createSealedCookies(config, cookie, services.secrets),
    forwardedHost: createForwardedHost(server.hosts),
    warnOnce: createWarnOnce(log),
    /** `server.mount`, the prefix of every public path. */
    mount: config.gateway.server.mount ?? ''
  }
}

function createWarnOnce(log: Services['log']) {
  const warned = new Set<string>()
  return (key: string, fields: object, message: string): void => {
    if (!warned.has(key)) log.warn(fields, message)
    warned.add(key)
  }
}

function createSource(
  name: string,
  source: SourceConfig,
  { users }: Config,
  { log, upstream }: Pick<Services, 'log'> & { readonly upstream: (name: string) => Upstream }
): CredentialSource {
  switch (source.kind) {
    case 'users-file':
      return createUsersFile(name, users[source.file] ?? { users: {} })
    case 'ldap':
      return createLdap(name, source, user =>
        log.warn({ event: 'login.ambiguous', source: name, user }, ambiguous)
      )
    case 'oidc':
      return new OidcSource(name, source, providerOf(source))
    case 'upstream-login':
      return createUpstreamLogin({ name, config: source, backEnd: upstream(source.upstream), log })
  }
}

function createBackEndTokens(config: Config, upstreamOf: (name: string) => Upstream) {
  const exchanges = new Map<string, CredentialSource>()
  const mints = new Map<string, ReturnType<typeof createMint>>()
  for (const [upstream, { credential }] of Object.entries(config.routes.upstreams)) {
    const { exchange, jwt } = credentialOf(credential)
    if (exchange !== undefined) {
      const bodyOf = (session: Session) => fillUser(config, exchange.body, session) as object
      const backEnd = upstreamOf(upstream)
      exchanges.set(upstream, createTokenExchange({ upstream, config: exchange, bodyOf, backEnd }))
    }
    if (jwt !== undefined) {
      const claims = (session: Session) => claimsOf(config, upstream, jwt.claims, session)
      mints.set(upstream, createMint(jwt, claims))
    }
  }
  const keys = [...mints.values()].flatMap(({ publicKeys }) => publicKeys)
  return {
    exchanges,
    /** The credential that an upstream gets: that of the session’s source, or a token of its own. */
    credentialFor: (upstream: string): ((session: Session) => Credential | undefined) => {
      if (exchanges.has(upstream)) return session => credentialIn(session, upstream)
      return mints.get(upstream)?.tokenOf ?? (({ credential }) => credential)
    },
    /** Of all upstreams, each once. */
    publicKeys: [...new Map(keys.map(key => [key.kid, key])).values()]
  }
}

function claimsOf(config: Config, upstream: string, claims: object, session: Session) {
  const { id, username, name, roles } = session.identity
  return {
    iss: 'console-gateway',
    aud: upstream,
    sub: config.gateway.identity.prefix ? identityKey(session) : id,
    preferred_username: username,
    name,
    roles,
    ...(fillUser(config, claims, session) as object)
  }
}

const inAscii = /^[\x20-\x7e]*$/

type Added = Pick<Call, 'method' | 'path' | 'headers' | 'body' | 'recorded'>

/** @returns the upstream of a name in config; own code adds headers to its calls */
function withOwnCode(
  ask: GatewayServices['upstream'],
  modules: Modules,
  { upstreams }: RoutesConfig
) {
  return (name: string): Upstream => {
    const config = upstreams[name] as UpstreamConfig
    const upstream = ask(name, config)
    const { module: file = '' } = config
    const code = modules.get(file)
    if (code === undefined) return upstream
    /** A call that is sent again shall not hold the headers of its first time. */
    const signed = async <C extends Added>(call: C): Promise<C> => ({
      ...call,
      headers: { ...call.headers, ...(await headersBy(file, code, call)) }
    })
    return {
      ...upstream,
      send: async call => upstream.send(await signed(call)),
      connect: async call => upstream.connect(await signed(call))
    }
  }
}

/** @throws GatewayError `upstream.module` */
async function headersBy(file: string, code: OwnCode, call: Added) {
  const { method, path, headers, body, recorded } = call
  const text = body instanceof Readable || body === null ? undefined : body?.toString()
  try {
    const route = recorded?.trail.route ?? ''
    const added = await code({ method, path, headers: { ...headers }, body: text }, { route })
    if (!isRecord(added)) throw new TypeError(`${file}: it returned no object of headers`)
    for (const [name, value] of Object.entries(added)) {
      if (headerName.test(name) && typeof value === 'string' && inAscii.test(value)) continue
      throw new TypeError(`${file}: "${name}" is no header in lower case with text in ASCII`)
    }
    return added as Record<string, string>
  } catch (cause) {
    throw new GatewayError('upstream.module', { cause })
  }
}
