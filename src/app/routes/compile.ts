/** Config's routes as the app answers them: with aliases, upstreams, compiled shapes. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import type { ContractConfig } from '../../config/schema/proxied.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import {
  pathsOf,
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
import { createRewrite } from '../../proxy/path.ts'
import type { Live } from '../../session/types.ts'
import { createAnswer } from '../../shaping/answer.ts'
import { fillCurrentUser } from '../../shaping/current-user.ts'
import { isWrapped } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { publicPathsOf, responseShapeOf, shapeOf, upstreamOf } from './compile-common.ts'
import { compileParts } from './parts.ts'
import type { OwnRoute, Route, Shaping, Target } from './route.ts'

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
  const { config, envelope } = gateway
  const { routes, limits } = config
  const common = { ...commonOf(gateway, name, route), access: route.access }
  if (route.answer !== undefined) {
    return { ...common, ...answerOf(gateway, name, route.answer) }
  }
  const isInEnvelope = isWrapped(routes.shapes[route.shape ?? ''] ?? [], routes.shapes)
  const contract = contractOf(gateway, name, route.contract, isInEnvelope && envelope.dataName)
  const usual = shapingOf(gateway, name, route)
  const { parts } = usual
  const shaping: Shaping = {
    ...usual,
    shape: async (body, live, sent) => {
      const shaped = await usual.shape(body, live, sent)
      contract?.(() => shaped)
      return shaped
    }
  }
  if (route.upstream === undefined) {
    return { ...common, status: 200, initialValue: () => ({}), shaping }
  }
  const isShaped = route.shape !== undefined || parts !== undefined
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
  const { parts } = usual
  const bodyOf = createProfileBody(gateway)
  const shapeNothing: Shaping['shape'] = (nothing, live) => live && bodyOf(nothing, live)
  const shaping: Shaping = {
    ...usual,
    shape: async (user, live, sent) =>
      shapeNothing(await usual.shape(user, live, sent), live, sent),
    shapeNothing
  }
  if (profile.upstream !== undefined) {
    return { ...common, shaping, target: { ...targetOf(gateway, name, profile), isReadOnly: true } }
  }
  return {
    ...common,
    status: 200,
    initialValue: live => live?.session.identity.profile,
    shaping: parts === undefined ? { shape: shapeNothing } : shaping
  }
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
    ...responseShapeOf(gateway, name, written.shape),
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
  const shape = shapeOf(gateway, route.body.shape)
  return {
    maxBytes: gateway.config.limits.sizes.shape,
    shape: (value, user) => shape?.apply(value, { target: '', route: name, user }) ?? value,
    as: route.body.as
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
