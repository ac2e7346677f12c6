/** Config's routes as the app needs them: paths with their aliases, upstreams, compiled shapes, credential sources. */
import type { Config } from './config/load.ts'
import type { ContractConfig } from './config/contracts.ts'
import type { RouteConfig } from './config/routes.ts'
import { type Contract, createContract } from './contract/contract.ts'
import type { ProxiedRoute } from './endpoints/proxied.ts'
import { createEnvelope, type Envelope } from './envelope.ts'
import type { CredentialSource } from './login/credential-source.ts'
import { createUpstreamLogin } from './login/upstream-login.ts'
import { createUsersFile } from './login/users-file.ts'
import { fillCurrentUser } from './proxy/current-user.ts'
import { valueAt } from './proxy/json.ts'
import { compileShape, isWrapped, type Shape } from './proxy/shape.ts'
import type { Upstream } from './proxy/upstream.ts'
import type { Services } from './services.ts'

interface Routes {
  readonly login: readonly string[]
  readonly logout: readonly string[]
  /** No paths where an upstream answers it. */
  readonly profile: { readonly paths: readonly string[], readonly contract?: Contract }
  readonly session: { readonly session: readonly string[], readonly extend: readonly string[], readonly list: readonly string[], readonly close: readonly string[] }
  readonly proxied: readonly ProxiedRoute[]
}

export function collectRoutes ({ gateway, contracts, routes: { endpoints, aliases, routes, shapes, upstreams }, limits: { sizes, expressions } }: Config, services: Services): Routes {
  const envelope = createEnvelope(gateway.envelope)
  const bounds = { timeoutMs: expressions.timeout, maxBytes: expressions.maxSize }
  const evaluate = (expression: string, input: unknown) => services.expressions.evaluate(expression, input, bounds)
  const pathsOf = (path: string) => [path, ...Object.entries(aliases).flatMap(([alias, target]) => target === path ? [alias] : [])]
  const upstreamOf = (name: string): Upstream => {
    const config = upstreams[name]
    if (config === undefined) throw new Error(`there is no upstream "${name}"`)
    return services.upstream(name, config)
  }
  const shapeOf = (name: string | undefined, { success }: Envelope): Shape | undefined => name === undefined ? undefined : compileShape(shapes[name] ?? [], { wrap: success, evaluate, shapes })
  const contractOf = (name: string, config: ContractConfig | undefined, wrapped: boolean): Contract | undefined => {
    const schema = contracts[name]
    return config === undefined || config.mode === 'off' || schema === undefined ? undefined : createContract({ route: name, schema, mode: config.mode, sample: config.sample, isWrapped: wrapped, drift: services.drift })
  }
  const common = (route: Pick<RouteConfig, 'path' | 'upstream' | 'rewrite' | 'timeout'>) => {
    const upstream = upstreamOf(route.upstream)
    return { paths: pathsOf(route.path), upstream, upstreamName: route.upstream, upstreamPath: route.rewrite ?? route.path, timeoutMs: route.timeout ?? upstream.config.responseTimeout }
  }

  const proxied = Object.entries(routes).map(([name, route]): ProxiedRoute => {
    const own = route.dialect === undefined ? undefined : createEnvelope({ ...gateway.envelope, dialect: route.dialect })
    const shape = shapeOf(route.shape, own ?? envelope)
    const contract = contractOf(name, route.contract, isWrapped(shapes[route.shape ?? ''] ?? [], shapes))
    return {
      name,
      ...common(route),
      methods: route.methods,
      touch: (route.touch ?? (name === 'notices' ? 'never' : 'always')) === 'always',
      access: route.access,
      maxBody: route.maxBody ?? sizes.body,
      ...(shape && { shaping: { shape: body => held(contract, shaped(shape, body)), maxShaped: route.maxShaped ?? sizes.shape, tooLarge: route.tooLarge } }),
      ...(own && { envelope: own }),
      ...(route.errorStatus && { errorStatus: route.errorStatus }),
      passAuthorization: route.passAuthorization,
      passCookies: route.passCookies,
      setCookies: route.setCookies,
      redirects: route.redirects
    }
  })
  const { profile } = endpoints
  const profileContract = contractOf('profile', profile.contract, true)
  if (profile.from === 'upstream') {
    const shape = shapeOf(profile.shape, envelope)
    proxied.push({
      name: 'profile',
      ...common({ ...profile, upstream: profile.upstream ?? '' }),
      methods: ['GET'],
      touch: true,
      access: 'session',
      maxBody: sizes.body,
      shaping: {
        shape: (body, session) => {
          if (session === undefined) return null
          const fill = (user: unknown) => envelope.success(fillCurrentUser(user, session.identity))
          const user = shape === undefined ? body : shaped(shape, body)
          return held(profileContract, user instanceof Promise ? user.then(fill) : fill(user))
        },
        maxShaped: sizes.shape,
        tooLarge: 'refuse'
      },
      passAuthorization: false,
      passCookies: [],
      setCookies: [],
      redirects: 'refuse'
    })
  }
  const session = endpoints.session.path
  return { session: { session: pathsOf(session), extend: pathsOf(`${session}/extend`), list: pathsOf(`${session}/list`), close: pathsOf(`${session}/close`) }, login: pathsOf(endpoints.login.path), logout: pathsOf(endpoints.logout.path), profile: { paths: profile.from === 'session' ? pathsOf(profile.path) : [], ...(profileContract && { contract: profileContract }) }, proxied }
}

/** @throws GatewayError where the back-end's own words amount to one */
function shaped (shape: Shape, body: unknown): unknown {
  const refusal = shape.refusal(body)
  if (refusal !== undefined) throw refusal
  return shape.apply(body)
}

/** @throws GatewayError where the answer breaks a strict contract */
function held (contract: Contract | undefined, answer: unknown): unknown {
  if (contract === undefined) return answer
  if (answer instanceof Promise) return answer.then(value => held(contract, value))
  contract(answer)
  return answer
}

/** The credential sources, in the order of the config. */
export function createSources ({ gateway, routes, users }: Config, services: Services): CredentialSource[] {
  return gateway.login.sources.map(source => {
    if (source.kind === 'users-file') return createUsersFile(users[source.file] ?? { users: {} })
    const upstream = routes.upstreams[source.upstream]
    if (upstream === undefined) throw new Error(`there is no upstream "${source.upstream}"`)
    return createUpstreamLogin({ config: source, send: services.upstream(source.upstream, upstream).send, credentialStyle: upstream.credential, valueAt })
  })
}

