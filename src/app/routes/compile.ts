/** Config's routes as the app answers them: with aliases, upstreams, compiled shapes. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import type { ContractConfig } from '../../config/schema/proxied.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { pathsOf, queryMapsOf, routeSettings } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Contract } from '../../contract/drift.ts'
import { readJson } from '../../json/body.ts'
import { isRecord } from '../../json/values.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import { createRewrite } from '../../proxy/path.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { Identity, Live } from '../../session/types.ts'
import { createAnswer, fillCurrentUser } from '../../shaping/answer.ts'
import { isWrapped } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { publicPathsOf, responseShapeOf, shapeOf } from './compile-common.ts'
import { compileParts } from './parts.ts'

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

/** A route, or the profile, which has some of the same keys. */
type Written = Pick<RouteConfig, 'path' | 'methods'> & Partial<RouteConfig>

/** Those of config, and the profile. */
export async function compileRoutes(gateway: Gateway): Promise<Route[]> {
  const routes: Route[] = []
  for (const [name, route] of Object.entries(gateway.config.routes.routes)) {
    await requestsInBetween()
    routes.push(compileRoute(gateway, name, route))
  }
  return [...routes, compileProfile(gateway)]
}

function compileRoute(gateway: Gateway, name: string, route: RouteConfig): Route {
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

function compileProfile(gateway: Gateway): Route {
  const { config, envelope, sessions, answers } = gateway
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
          : answer.render({ ...live, ...sessions.times(), profile: user })
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

/** The user with the members that consoles of the dialect read. */
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
  /** The public path and its aliases. */
  const paths = pathsOf(config.routes, written.path)
  return { name, paths, methods, access, keys, touch, errorStatus }
}

function shapingOf(gateway: Gateway, name: string, written: Written) {
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
    parts: compileParts(gateway, { ...written, name })
  }
}

/** The upstream of a route, what it gets of a request, and what the client gets of its response. */
function targetOf(gateway: Gateway, name: string, written: Written) {
  const { upstream: upstreamName = '' } = written
  const upstream = gateway.upstream(upstreamName)
  const { config, base } = upstream
  const paths = publicPathsOf(gateway, written.path)
  const isReadOnly = name === profileName
  return {
    written,
    upstream,
    upstreamName,
    /** From public paths to the upstream's, and back. */
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

/** An answer that stands in config, without an upstream. */
function answerOf(
  { config, sessions, envelope }: Gateway,
  name: string,
  written: NonNullable<RouteConfig['answer']>
): Pick<OwnRoute, 'status' | 'initialValue' | 'shaping'> {
  const { placement, render } = createAnswer(config, written)
  return {
    status: written.status ?? 200,
    initialValue: live => render(live && { ...live, ...sessions.times() }),
    shaping: {
      shape: (value, live) => {
        refuseLeak(value, live?.session, `routes.${name}.answer`)
        return envelope.success(value, undefined, placement)
      }
    }
  }
}

function bodyMappingOf(gateway: Gateway, name: string, route: Written): BodyMapping | undefined {
  if (route.body === undefined) return undefined
  const { shape: shapeName, as } = route.body
  const shape = shapeName === undefined ? undefined : shapeOf(gateway, shapeName)
  return {
    maxBytes: gateway.config.limits.sizes.shape,
    shape: (value, user) => shape?.apply(value, { target: '', route: name, user }) ?? value,
    as
  }
}

/** @param dataName the member of the envelope that the contract is about */
function contractOf(
  { config, drift }: Gateway,
  route: string,
  contract: ContractConfig | undefined,
  dataName: string | false
): Contract | undefined {
  const schema = config.contracts[route]
  if (contract === undefined || contract.mode === 'off' || schema === undefined) return undefined
  return drift.contract({ route, schema, mode: contract.mode, dataName })
}
