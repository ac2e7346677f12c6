/** Config's routes as the app needs them: paths with their aliases, upstreams, compiled shapes, credential sources. */
import { sourceName } from '../config/schema/gateway.ts'
import type { Config } from '../config/schema/config.ts'
import { sessionPaths } from '../config/schema/own-endpoints.ts'
import { credentialOf } from '../config/schema/routes.ts'
import type { ContractConfig } from '../config/schema/contracts.ts'
import { type Contract, createContract } from '../contract/contract.ts'
import type { ComposedRoute } from './endpoints/aggregated.ts'
import type { ProxiedRoute } from './endpoints/proxied.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUsersFile } from '../login/users-file.ts'
import { readJson } from '../json/body.ts'
import { fillCurrentUser } from '../shaping/current-user.ts'
import { valueAt } from '../json/values.ts'
import { compileShape, isWrapped, type Shape } from '../shaping/shape.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { compileParts, type Composable } from './compile-parts.ts'
import type { GenerationServices } from './generation-services.ts'
import type { Session } from '../session/record.ts'

export interface Routes {
  readonly login: readonly string[]
  readonly logout: readonly string[]
  /** No paths where upstreams have to do with it. */
  readonly profile: { readonly paths: readonly string[]; readonly contract?: Contract }
  readonly session: {
    readonly session: readonly string[]
    readonly extend: readonly string[]
    readonly list: readonly string[]
    readonly close: readonly string[]
  }
  readonly proxied: readonly ProxiedRoute[]
  readonly composed: readonly ComposedRoute[]
}

/** @param othersTurn is waited for between one route and the next */
export async function collectRoutes(
  {
    gateway,
    contracts,
    routes: { endpoints, aliases, routes, shapes, upstreams },
    limits: { sizes, expressions }
  }: Config,
  services: GenerationServices,
  othersTurn: () => Promise<void>
): Promise<Routes> {
  const envelope = createEnvelope(gateway.envelope)
  const bounds = { timeoutMs: expressions.timeout, maxBytes: expressions.maxSize }
  const evaluateFor = (route: string) => {
    const own = { ...bounds, route }
    const { evaluate } = services.expressions
    return (expression: string, input: unknown) => evaluate(expression, input, own)
  }
  const pathsOf = (path: string) => [
    path,
    ...Object.entries(aliases).flatMap(([alias, target]) => (target === path ? [alias] : []))
  ]
  const upstreamOf = (name: string): Upstream => {
    const config = upstreams[name]
    if (config === undefined) throw new Error(`there is no upstream "${name}"`)
    return services.upstream(name, config)
  }
  const shapeOf = (
    route: string,
    name: string | undefined,
    { success }: Envelope
  ): Shape | undefined => {
    if (name === undefined) return undefined
    const onMissing = once((path: string) =>
      services.log.warn(
        { event: 'shape.missing', shape: name, path },
        `shape ${name}: unwrap found nothing at "${path}" of an answer, and goes on with null. ` +
          'Look at the answer with `console-gateway shape ROUTE --live`'
      )
    )
    return compileShape(shapes[name] ?? [], {
      wrap: success,
      evaluate: evaluateFor(route),
      shapes,
      onMissing
    })
  }
  const contractOf = (
    name: string,
    config: ContractConfig | undefined,
    wrapped: boolean
  ): Contract | undefined => {
    const schema = contracts[name]
    return config === undefined || config.mode === 'off' || schema === undefined
      ? undefined
      : createContract({
          route: name,
          schema,
          mode: config.mode,
          sample: config.sample,
          isWrapped: wrapped,
          drift: services.drift
        })
  }
  const common = (
    route: { readonly path: string; readonly rewrite?: string; readonly timeout?: number },
    upstreamName: string
  ) => {
    const upstream = upstreamOf(upstreamName)
    return {
      paths: pathsOf(route.path),
      upstream,
      upstreamName,
      upstreamPath: route.rewrite ?? route.path,
      timeoutMs: route.timeout ?? upstream.config.responseTimeout
    }
  }
  const partsOf = (routeName: string, route: Composable, own: Envelope) => {
    const shapePart = (name: string | undefined) => {
      const shape = shapeOf(routeName, name, own)
      return (body: unknown) => (shape === undefined ? body : shaped(shape, body))
    }
    return compileParts(route, {
      identity: gateway.identity,
      publicPaths: pathsOf(route.path).map(path => (gateway.server.mount ?? '') + path),
      maxBytes: route.maxShaped ?? sizes.shape,
      upstreamOf,
      shapePart
    })
  }

  const proxied: ProxiedRoute[] = []
  const composed: ComposedRoute[] = []
  for (const [name, route] of Object.entries(routes)) {
    await othersTurn()
    const own =
      route.dialect === undefined
        ? undefined
        : createEnvelope({ ...gateway.envelope, dialect: route.dialect })
    const shape = shapeOf(name, route.shape, own ?? envelope)
    const contract = contractOf(
      name,
      route.contract,
      isWrapped(shapes[route.shape ?? ''] ?? [], shapes)
    )
    const parts = partsOf(name, route, own ?? envelope)
    const shaping = {
      shape: (body: unknown) => (shape === undefined ? body : held(contract, shaped(shape, body))),
      maxShaped: route.maxShaped ?? sizes.shape,
      tooLarge: route.tooLarge,
      ...(parts && { parts })
    }
    const told = {
      name,
      touch: (route.touch ?? (name === 'notices' ? 'never' : 'always')) === 'always',
      access: route.access,
      ...(own && { envelope: own }),
      ...(route.errorStatus && { errorStatus: route.errorStatus })
    }
    if (route.upstream === undefined) {
      if (parts !== undefined) {
        composed.push({
          ...told,
          paths: pathsOf(route.path),
          own: () => ({}),
          shaping: { ...shaping, parts }
        })
      }
      continue
    }
    proxied.push({
      ...told,
      ...common(route, route.upstream),
      methods: route.methods,
      maxBody: route.maxBody ?? sizes.body,
      ...(shape !== undefined || parts !== undefined
        ? { shaping }
        : contract && {
            observe: (bytes, fields) => contract(() => readJson(bytes, fields, sizes.shape))
          }),
      passAuthorization: route.passAuthorization,
      passCookies: route.passCookies,
      passRefusedHeaders: route.passRefusedHeaders,
      setCookies: route.setCookies,
      redirects: route.redirects
    })
  }
  const { profile } = endpoints
  const profileContract = contractOf('profile', profile.contract, true)
  const profileParts = partsOf('profile', profile, envelope)
  const profileShape = shapeOf('profile', profile.shape, envelope)
  const profileRoute = {
    name: 'profile',
    touch: true,
    access: 'session',
    shaping: {
      shape: (body: unknown, session: Session | undefined) => {
        if (session === undefined) return null
        const fill = (user: unknown) => envelope.success(fillCurrentUser(user, session.identity))
        const user = profileShape === undefined ? body : shaped(profileShape, body)
        return held(profileContract, user instanceof Promise ? user.then(fill) : fill(user))
      },
      maxShaped: sizes.shape,
      tooLarge: 'refuse',
      ...(profileParts && { parts: profileParts })
    }
  } as const
  const isFromSession = profile.from === 'session' && profileParts === undefined
  if (profile.from === 'upstream') {
    proxied.push({
      ...profileRoute,
      ...common(profile, profile.upstream ?? ''),
      methods: ['GET'],
      maxBody: sizes.body,
      passAuthorization: false,
      passCookies: [],
      passRefusedHeaders: [],
      setCookies: [],
      redirects: 'refuse'
    })
  } else if (profileParts !== undefined) {
    composed.push({
      ...profileRoute,
      paths: pathsOf(profile.path),
      own: current => current?.identity.profile,
      shaping: { ...profileRoute.shaping, parts: profileParts }
    })
  }
  const session = sessionPaths(endpoints)
  return {
    session: {
      session: pathsOf(session.session),
      extend: pathsOf(session.extend),
      list: pathsOf(session.list),
      close: pathsOf(session.close)
    },
    login: pathsOf(endpoints.login.path),
    logout: pathsOf(endpoints.logout.path),
    profile: {
      paths: isFromSession ? pathsOf(profile.path) : [],
      ...(profileContract && { contract: profileContract })
    },
    proxied,
    composed
  }
}

/** @throws GatewayError where the back-end's own words amount to one */
function shaped(shape: Shape, body: unknown): unknown {
  const refusal = shape.refusal(body)
  if (refusal !== undefined) throw refusal
  return shape.apply(body)
}

/** @throws GatewayError where the answer breaks a strict contract */
function held(contract: Contract | undefined, answer: unknown): unknown {
  if (contract === undefined) return answer
  if (answer instanceof Promise) return answer.then(value => held(contract, value))
  contract(() => answer)
  return answer
}

/** The credential sources, in the order of the config. */
export function createSources(
  { gateway, routes, users }: Config,
  services: GenerationServices
): CredentialSource[] {
  return gateway.login.sources.map(source => {
    const name = sourceName(source)
    if (source.kind === 'users-file') {
      return createUsersFile(name, users[source.file] ?? { users: {} }, source.decides)
    }
    const upstream = routes.upstreams[source.upstream]
    if (upstream === undefined) throw new Error(`there is no upstream "${source.upstream}"`)
    return createUpstreamLogin({
      name,
      config: source,
      send: services.upstream(source.upstream, upstream).fetchWhole,
      credentialStyle: credentialOf(upstream.credential).as,
      valueAt
    })
  })
}

/** Told once for each text: what every answer has must not fill the log. */
function once(tell: (text: string) => void): (text: string) => void {
  const told = new Set<string>()
  return text => {
    if (told.has(text)) return
    told.add(text)
    tell(text)
  }
}
