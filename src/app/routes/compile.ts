/** Config's routes as the app answers them: with aliases, upstreams, compiled shapes. */
import type { ContractConfig } from '../../config/schema/contracts.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import {
  pathsOf,
  type QueryMaps,
  queryMapsOf,
  routeSettings,
  timeoutOf,
  upstreamPathOf
} from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Contract } from '../../contract/drift.ts'
import { readJson } from '../../json/body.ts'
import { isRecord } from '../../json/values.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import { createRewrite, type Rewrite } from '../../proxy/path.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Live } from '../../session/types.ts'
import { createAnswer } from '../../shaping/answer.ts'
import { fillCurrentUser } from '../../shaping/current-user.ts'
import { isWrapped } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import type { Access } from '../hooks/context.ts'
import { createYield } from '../yield.ts'
import {
  publicPathsOf,
  responseShapeOf,
  type ShapeBody,
  shapeOf,
  upstreamOf
} from './compile-common.ts'
import { compileParts, type Parts } from './parts.ts'

interface CommonRoute {
  readonly name: string
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: Access
  /** Whether a call keeps the session from going idle. */
  readonly touch: boolean
  readonly errorStatus: 'own' | 'ok'
}

export interface ForwardedRoute extends CommonRoute {
  readonly target: Target
  /** Without it, bodies pass byte for byte. */
  readonly shaping?: Shaping
}

/** Without an upstream: parts alone, the profile of the session, or an answer of config. */
export interface OwnRoute extends CommonRoute {
  readonly target?: undefined
  readonly status: number
  /** Parts are added to it, before it is shaped. */
  readonly initialValue: (live: Live | undefined) => unknown
  readonly shaping: Pick<Shaping, 'shape' | 'parts'>
}

export type Route = ForwardedRoute | OwnRoute

/** The upstream of a route, what it gets of a request, and what the client gets of its response. */
export interface Target {
  /** The route in config, or the profile, which has some of the same keys. */
  readonly written: Partial<RouteConfig>
  readonly upstream: Upstream
  readonly upstreamName: string
  /** From public paths to the upstream's, and back. */
  readonly rewrite: Rewrite
  /** The longest wait for a byte of the response. */
  readonly timeoutMs: number
  readonly maxBody: number
  /** Whether the upstream is called with GET and without a body, whatever the client's method. */
  readonly isReadOnly?: boolean
  /** Without it the query passes byte for byte. */
  readonly query?: QueryMaps | undefined
  /** Without it the request's body passes byte for byte. */
  readonly body?: BodyMapping | undefined
  /** Sees JSON that passes byte for byte, where it was small enough to be collected. */
  readonly observe?: (bytes: Buffer, headers: UpstreamResponse['headers']) => void
}

export interface Shaping {
  readonly shape: ShapeBody
  /** Bytes of the body, as it comes and unpacked. */
  readonly maxShaped: number
  /** Told of a label of the body, such as its charset, that is wrong. */
  readonly onIgnored: (label: string) => void
  /** Responses of other upstreams that are added before it is shaped. */
  readonly parts?: Parts
}

/** A route, or the profile, which has some of the same keys. */
type Written = Pick<RouteConfig, 'path' | 'methods'> & Partial<RouteConfig>

/** Those of config, and the profile. */
export async function compileRoutes(gateway: Gateway): Promise<Route[]> {
  const yieldToRequests = createYield()
  const routes: Route[] = []
  for (const [name, route] of Object.entries(gateway.config.routes.routes)) {
    await yieldToRequests()
    routes.push(compileRoute(gateway, name, route))
  }
  return [...routes, compileProfile(gateway)]
}

function compileRoute(gateway: Gateway, name: string, route: RouteConfig): Route {
  const { routes, limits } = gateway.config
  const common = { ...commonOf(gateway, name, route), access: route.access }
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
  const isShaped = route.shape !== undefined || usual.parts !== undefined
  return {
    ...common,
    ...(isShaped && { shaping }),
    target: {
      ...targetOf(gateway, name, route),
      query: queryMapsOf(routes, route),
      body: bodyMappingOf(gateway, name, route),
      ...(!isShaped &&
        contract && {
          observe: (bytes, fields) => contract(() => readJson(bytes, fields, limits.sizes.shape))
        })
    }
  }
}

function compileProfile(gateway: Gateway): Route {
  const { name } = ownRoutes.profile
  const { profile } = gateway.config.routes.endpoints
  const common = { ...commonOf(gateway, name, profile), access: 'session' } as const
  const usual = shapingOf(gateway, name, profile)
  const bodyOf = createProfileBody(gateway)
  const shaping: Shaping = {
    ...usual,
    shape: async (user, live, sent) => {
      const shaped = user === undefined ? null : await usual.shape(user, live, sent)
      return live && bodyOf(shaped, live)
    }
  }
  if (profile.upstream !== undefined) {
    return { ...common, shaping, target: { ...targetOf(gateway, name, profile), isReadOnly: true } }
  }
  return { ...common, status: 200, initialValue: live => live?.session.identity.profile, shaping }
}

function commonOf({ config }: Gateway, name: string, written: Written) {
  const { touch, errorStatus } = routeSettings(config, name, written)
  const paths = pathsOf(config.routes, written.path)
  return { name, paths, methods: written.methods, touch, errorStatus }
}

function shapingOf(gateway: Gateway, name: string, written: Written): Shaping {
  const maxShaped = gateway.config.limits.sizes.shape
  const parts = compileParts(gateway, { ...written, name })
  return {
    shape: responseShapeOf(gateway, name, written.shape),
    maxShaped,
    onIgnored: logLabels(gateway, name),
    ...(parts && { parts })
  }
}

/** Logs it once: the next response has the same fault. */
function logLabels({ log }: Gateway, route: string): (label: string) => void {
  let isLogged = false
  return label => {
    if (isLogged) return
    isLogged = true
    const text = `the response was read as the JSON that it is, although ${label}`
    log.warn({ event: 'shape.label', route, label }, `route ${route}: ${text}`)
  }
}

function targetOf(gateway: Gateway, name: string, written: Written): Target {
  const { upstream: upstreamName = '' } = written
  const upstream = upstreamOf(gateway, upstreamName)
  const { config, base } = upstream
  const paths = publicPathsOf(gateway, written.path)
  return {
    written,
    upstream,
    upstreamName,
    rewrite: createRewrite(paths, upstreamPathOf(written), base),
    timeoutMs: timeoutOf(written, config),
    maxBody: routeSettings(gateway.config, name, written).maxBody
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
        refuseLeak(value, live?.session.credential, `routes.${name}.answer`)
        return envelope.success(value, undefined, placement)
      }
    }
  }
}

function bodyMappingOf(
  gateway: Gateway,
  name: string,
  route: RouteConfig
): BodyMapping | undefined {
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

/** The whole body for a user, as the session or the upstream has it. */
function createProfileBody(gateway: Gateway): (user: unknown, live: Live) => unknown {
  const { config, envelope, sessions } = gateway
  const answer = gateway.answers.profile
  const { contract: rules, upstream } = config.routes.endpoints.profile
  const placement = answer?.placement ?? 'data'
  const contract = contractOf(gateway, 'profile', rules, placement === 'data' && envelope.dataName)
  const usual = (user: unknown, { session: { identity } }: Live) => {
    if (envelope.fillsUser) return fillCurrentUser(user, identity)
    if (upstream !== undefined || (user !== undefined && !isRecord(user))) return user
    const { id, username, name, roles } = identity
    return { id, username, name, roles, ...user }
  }
  return (user, live) => {
    const value =
      answer === undefined
        ? usual(user, live)
        : answer.render({ ...live, ...sessions.times(), profile: user })
    refuseLeak(value, live.session.credential, 'endpoints.profile')
    const whole = envelope.success(value, undefined, placement)
    contract?.(() => whole)
    return whole
  }
}
