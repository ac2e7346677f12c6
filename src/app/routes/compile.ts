/** Config's routes as the app answers them: with aliases, upstreams, compiled shapes. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import { memoized } from '../../bounded-map.ts'
import type { ContractConfig } from '../../config/schema/proxied.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { pathsOf, queryMapsOf, routeSettings } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Contract } from '../../contract/drift.ts'
import { readJson } from '../../json/body.ts'
import { isRecord, type Json } from '../../json/values.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { createRewrite } from '../../proxy/path.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { Identity, Live } from '../../session/types.ts'
import { createAnswer, fillCurrentUser } from '../../shaping/answer.ts'
import type { User } from '../../shaping/own-code.d.ts'
import { compileShape, isWrapped, type Shape } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { type Compiling, createCredentials } from './credentials.ts'
import { compileParts, type ShapeBody } from './parts.ts'

const profileName = ownRoutes.profile.name

type CommonRoute = ReturnType<typeof commonOf>
export type Target = ReturnType<typeof targetOf>
export type Shaping = ReturnType<typeof shapingOf>

export interface ForwardedRoute extends CommonRoute {
  readonly target: Target
  /** Without it, bodies pass byte for byte. */
  readonly shaping?: Shaping
  /** Sees JSON that passes byte for byte, where it was small enough to be collected. */
  readonly observe?: (bytes: Buffer, headers: UpstreamResponse['headers']) => void
}

/** Without an upstream: parts alone, the profile of the session, or an answer of config. */
export interface OwnRoute extends CommonRoute {
  readonly target?: undefined
  readonly status: number
  /** Parts are added to it, before it is shaped. */
  readonly initialValue: (live: Live | undefined) => unknown
  readonly shaping: Partial<Shaping> & Pick<Shaping, 'shape'>
}

export type Route = ForwardedRoute | OwnRoute

declare module 'fastify' {
  interface FastifyInstance {
    /** Of the whole app. */
    routes: readonly Route[]
  }
}

type Written = Pick<RouteConfig, 'path' | 'methods'> & Partial<RouteConfig>

export async function compileRoutes(gateway: Gateway): Promise<Route[]> {
  const routes: Route[] = []
  const compiling: Compiling = {
    ...gateway,
    credentialsOf: memoized(upstream => createCredentials(gateway, upstream))
  }
  for (const [name, route] of Object.entries(gateway.config.routes.routes)) {
    await requestsInBetween()
    routes.push(compileRoute(compiling, name, route))
  }
  return [...routes, compileProfile(compiling)]
}

function compileRoute(gateway: Compiling, name: string, route: RouteConfig): Route {
  const { routes, limits } = gateway.config
  const common = commonOf(gateway, name, route)
  if (route.answer !== undefined) {
    return { ...common, ...answerOf(gateway, name, route.answer) }
  }
  const isInEnvelope = isWrapped(routes.shapes[route.shape ?? ''] ?? [], routes.shapes)
  const { dataName } = gateway.envelope
  const contract = contractOf(gateway, name, route.contract, isInEnvelope && dataName)
  const usual = shapingOf(gateway, name, route)
  const shaping: Shaping = {
    ...usual,
    shape: async (body, live, sent) => {
      const shaped = await usual.shape(body, live, sent)
      if (body !== undefined) contract?.(() => shaped)
      return shaped
    }
  }
  if (route.upstream === undefined) {
    return { ...common, status: 200, initialValue: () => ({}), shaping }
  }
  const target = targetOf(gateway, name, route)
  if (route.shape !== undefined || usual.parts !== undefined) return { ...common, target, shaping }
  if (contract === undefined) return { ...common, target }
  const { shape: maxBytes } = limits.sizes
  const observe: ForwardedRoute['observe'] = (bytes, headers) =>
    contract(() => readJson(bytes, headers, maxBytes))
  return { ...common, target, observe }
}

function compileProfile(gateway: Compiling): Route {
  const { config, envelope, answers } = gateway
  const { profile } = config.routes.endpoints
  const common = commonOf(gateway, profileName, profile)
  const usual = shapingOf(gateway, profileName, profile)
  const answer = answers.profile
  const placement = answer?.placement ?? 'data'
  const dataName = placement === 'data' && envelope.dataName
  const contract = contractOf(gateway, profileName, profile.contract, dataName)
  const shaping: Shaping = {
    ...usual,
    shape: async (body, live, sent) => {
      if (live === undefined) return undefined
      const user = body === undefined ? null : await usual.shape(body, live, sent)
      const value =
        answer === undefined
          ? filledUser(gateway, user, live.session.identity)
          : answer.render({ ...live, profile: user })
      refuseLeak(value, live.session, 'endpoints.profile')
      const whole = envelope.success(value, undefined, placement)
      contract?.(() => whole)
      return whole
    }
  }
  if (profile.upstream !== undefined) {
    return { ...common, shaping, target: targetOf(gateway, profileName, profile) }
  }
  return { ...common, status: 200, initialValue: live => live?.session.identity.profile, shaping }
}

function filledUser({ config, envelope }: Gateway, user: unknown, identity: Identity): unknown {
  if (envelope.fillsUser) return fillCurrentUser(user, identity)
  const { upstream } = config.routes.endpoints.profile
  if (upstream !== undefined || !isRecord(user)) return user
  const { id, username, name, roles } = identity
  return { id, username, name, roles, ...user }
}

function commonOf({ config }: Gateway, name: string, written: Written) {
  const { touch, errorStatus } = routeSettings(config, name, written)
  // The profile of a key tells a script only what its own key may do.
  const { methods, access = 'session', keys = name === profileName } = written
  const paths = pathsOf(config.routes, written.path)
  return { name, paths, methods, access, keys, touch, errorStatus }
}

function shapingOf(gateway: Compiling, name: string, written: Written) {
  return {
    shape: responseShapeOf(gateway, name, written.shape),
    /** Bytes of the body, as it comes and unpacked. */
    maxShaped: gateway.config.limits.sizes.shape,
    /** Told of a label of the body, such as its charset, that is wrong. */
    onIgnored: (label: string) => {
      const text = `the response was read as the JSON that it is, although ${label}`
      const fields = { event: 'shape.label', route: name, label }
      gateway.warnOnce(`label ${name}`, fields, `route ${name}: ${text}`)
    },
    /** Responses of other upstreams that are added before it is shaped. */
    parts: compileParts(gateway, written, shape => responseShapeOf(gateway, name, shape))
  }
}

function targetOf(gateway: Compiling, name: string, written: Written) {
  const { upstream: upstreamName = '' } = written
  const upstream = gateway.upstream(upstreamName)
  const { config, base } = upstream
  const paths = pathsOf(gateway.config.routes, written.path).map(each => gateway.mount + each)
  const isReadOnly = name === profileName
  return {
    written,
    upstream,
    upstreamName,
    credentials: gateway.credentialsOf(upstreamName),
    rewrite: createRewrite(paths, written.rewrite ?? written.path, base),
    /** The longest wait for a byte of the response. */
    timeoutMs: written.timeout ?? config.responseTimeout,
    maxBody: routeSettings(gateway.config, name, written).maxBody,
    /** Whether the upstream is called with GET and without a body, whatever the client's method. */
    isReadOnly,
    /** Without it the query passes byte for byte. */
    query: isReadOnly ? undefined : queryMapsOf(gateway.config.routes, written),
    /** Without it the request's body passes byte for byte. */
    body: bodyMappingOf(gateway, name, written)
  }
}

function answerOf(
  { config, envelope }: Gateway,
  name: string,
  written: NonNullable<RouteConfig['answer']>
): Pick<OwnRoute, 'status' | 'initialValue' | 'shaping'> {
  const { placement, render } = createAnswer(config, written)
  return {
    status: written.status ?? 200,
    initialValue: render,
    shaping: {
      shape: (value, live) => {
        refuseLeak(value, live?.session, `routes.${name}.answer`)
        return envelope.success(value, undefined, placement)
      }
    }
  }
}

function bodyMappingOf(gateway: Gateway, name: string, route: Written) {
  if (route.body === undefined) return undefined
  const { shape: shapeName, as } = route.body
  const shape = shapeName === undefined ? undefined : shapeOf(gateway, shapeName)
  return {
    /** Of the body as it comes, and of what it unpacks to. */
    maxBytes: gateway.config.limits.sizes.shape,
    shape: (value: Json, user: User | undefined): Json =>
      shape?.apply(value, { target: '', route: name, user }) ?? value,
    /** The type for the upstream; the client's own without it. */
    as
  }
}

function contractOf(
  { config, drift }: Gateway,
  route: string,
  contract: ContractConfig | undefined,
  dataName: string | false
): Contract | undefined {
  const schema = config.contracts[contract?.file ?? '']
  if (contract === undefined || schema === undefined) return undefined
  return drift.contract({ route, schema, mode: contract.mode, dataName })
}

function shapeOf(gateway: Gateway, name: string): Shape {
  const { config, modules, warnOnce } = gateway
  const { shapes, paging } = config.routes
  const wrap = gateway.envelope.success
  const onMissing = (path: string) => {
    warnOnce(
      `shape ${name} ${path}`,
      { event: 'shape.missing', shape: name, path },
      `shape ${name}: unwrap found nothing at "${path}" of an answer, and goes on with null. ` +
        'Look at the answer with `console-gateway explain GET PATH --live`'
    )
  }
  return compileShape(shapes[name] ?? [], { wrap, shapes, paging, modules, onMissing })
}

function responseShapeOf(gateway: Gateway, route: string, name: string | undefined): ShapeBody {
  if (name === undefined) return (body = null) => body
  const { watchShape } = gateway
  const shape = shapeOf(gateway, name)
  return (body, live, sent) => {
    if (body !== undefined) {
      watchShape?.(name, body)
      const refusal = shape.refusal(body)
      if (refusal !== undefined) throw refusal
    }
    const use = { ...sent, route, user: live?.session.identity }
    return shape.apply(body ?? null, use) ?? null
  }
}
