/** Config's routes as the app answers them: with aliases, upstreams, compiled shapes. */
import type { ContractConfig } from '../../config/schema/contracts.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import {
  pathsOf,
  profilePlacement,
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
import { createEnvelope, type Envelope } from '../../shaping/envelope.ts'
import { isWrapped } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { createYield } from '../yield.ts'
import { publicPathsOf, responseShapeOf, shapeOf, upstreamOf } from './compile-common.ts'
import { compileParts } from './parts.ts'
import type { OwnRoute, Route, Shaping, Target } from './route.ts'

/** A route, or the profile, which has some of the same keys. */
type Written = Pick<RouteConfig, 'path' | 'methods' | 'parts' | 'missing'> & Partial<RouteConfig>

/** Those of config, and the profile. */
export async function compileRoutes(gateway: Gateway): Promise<Route[]> {
  const yieldToRequests = createYield()
  const routes: Route[] = []
  for (const [name, route] of Object.entries(gateway.config.routes.routes)) {
    await yieldToRequests()
    const compiled = compileRoute(gateway, name, route)
    if (compiled !== undefined) routes.push(compiled)
  }
  return [...routes, compileProfile(gateway)]
}

/** @returns undefined for a route without anything to answer */
function compileRoute(gateway: Gateway, name: string, route: RouteConfig): Route | undefined {
  const { routes, limits } = gateway.config
  const settings = gateway.config.gateway.envelope
  const { dialect } = routeSettings(gateway.config, name, route)
  const isOwnDialect = dialect !== settings.dialect
  const envelope = isOwnDialect ? createEnvelope({ ...settings, dialect }) : gateway.envelope
  const common = {
    ...commonOf(gateway, name, route),
    access: route.access,
    ...(isOwnDialect && { envelope })
  }
  if (route.answer !== undefined) {
    return { ...common, ...answerOf(gateway, name, route.answer, envelope) }
  }
  const isInEnvelope = isWrapped(routes.shapes[route.shape ?? ''] ?? [], routes.shapes)
  const contract = contractOf(gateway, name, route.contract, isInEnvelope && envelope.dataName)
  const usual = shapingOf(gateway, name, route, envelope)
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
    return parts && { ...common, status: 200, initialValue: () => ({}), shaping }
  }
  const isShaped = route.shape !== undefined || parts !== undefined
  return {
    ...common,
    ...(isShaped && { shaping }),
    target: {
      ...targetOf(gateway, name, route),
      query: queryMapsOf(routes, route),
      body: bodyMappingOf(gateway, name, route, envelope),
      ...(!isShaped &&
        contract && {
          observe: (bytes, fields) => contract(() => readJson(bytes, fields, limits.sizes.shape))
        })
    }
  }
}

function compileProfile(gateway: Gateway): Route {
  const { config, envelope, answers } = gateway
  const { name } = ownRoutes.profile
  const { profile } = config.routes.endpoints
  const common = { ...commonOf(gateway, name, profile), access: 'session' } as const
  const usual = shapingOf(gateway, name, profile, envelope)
  const { parts } = usual
  const bodyOf = createProfileBody(gateway)
  const shapeNothing: Shaping['shape'] = (nothing, live) => live && bodyOf(nothing, live)
  const shaping: Shaping = {
    ...usual,
    shape: async (user, live, sent) =>
      shapeNothing(await usual.shape(user, live, sent), live, sent),
    shapeNothing
  }
  if (profile.from === 'upstream') {
    return { ...common, shaping, target: { ...targetOf(gateway, name, profile), isReadOnly: true } }
  }
  const isAlone = parts === undefined
  return {
    ...common,
    status: (isAlone ? answers.profile?.status : undefined) ?? 200,
    initialValue: live => live?.session.identity.profile,
    shaping: isAlone ? { shape: shapeNothing } : shaping
  }
}

function commonOf({ config }: Gateway, name: string, written: Written) {
  const { touch, errorStatus } = routeSettings(config, name, written)
  const paths = pathsOf(config.routes, written.path)
  return { name, paths, methods: written.methods, touch, errorStatus }
}

function shapingOf(
  gateway: Gateway,
  name: string,
  written: Written,
  { success }: Envelope
): Shaping {
  const maxShaped = gateway.config.limits.sizes.shape
  const parts = compileParts(gateway, { ...written, name }, success)
  return {
    ...responseShapeOf(gateway, name, written.shape, success),
    maxShaped,
    tooLarge: written.tooLarge ?? 'refuse',
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
  { config, sessions }: Gateway,
  name: string,
  written: NonNullable<RouteConfig['answer']>,
  { success }: Envelope
): Pick<OwnRoute, 'status' | 'initialValue' | 'shaping'> {
  const { status, placement, render } = createAnswer(config, written)
  return {
    status,
    initialValue: live => render(live && { ...live, ...sessions.times() }),
    shaping: {
      shape: (value, live) => {
        refuseLeak(value, live?.session.credential, `routes.${name}.answer`)
        return success(value, undefined, placement)
      }
    }
  }
}

function bodyMappingOf(
  gateway: Gateway,
  name: string,
  route: RouteConfig,
  { success }: Envelope
): BodyMapping | undefined {
  if (route.body === undefined) return undefined
  const shape = shapeOf(gateway, route.body.shape, success)
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
  const { contract: rules, from } = config.routes.endpoints.profile
  const placement = profilePlacement(config.routes)
  const contract = contractOf(gateway, 'profile', rules, placement === 'data' && envelope.dataName)
  const usual = (user: unknown, { session: { identity } }: Live) => {
    if (envelope.fillsUser) return fillCurrentUser(user, identity)
    if (from === 'upstream' || (user !== undefined && !isRecord(user))) return user
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
