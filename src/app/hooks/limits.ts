/** Limits of requests: finds those of a request, and refuses it when one is exceeded. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { Verdict } from '../../limits/gcra.ts'
import { compilePlan, type Limit, signInRoute } from '../../limits/plan.ts'
import { identityKey, type VouchedUser } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { type RequestHook, unknownRoute } from './context.ts'
import { createLimiter, type Limiter } from './limiters.ts'

/** The state of a limit after the request, and whether it was counted there. */
interface Counted extends Verdict {
  readonly limit: Limit
  readonly key: string
  readonly isCounted: boolean
}

/**
 * A hook after the session's.
 * @param app has the rate-limit plugin
 */
export function createLimits(app: FastifyInstance): RequestHook {
  const { config, counts, addressOf } = app.gateway
  const plan = compilePlan(config.limits)
  const acquireSlot = createSlots(app.gateway)
  const count = createCounting(app)
  const decide = createDecision(app.gateway)

  return function checkLimits(request, reply, done) {
    const session = request.live?.session
    const address = addressOf(request)
    const { route = unknownRoute, access } = request.routeConfig
    // A session that ended is counted by itself: its tabs take nothing from neighbours.
    const ended = session === undefined && access !== 'public' ? request.endedSession : undefined
    const subject = ended === undefined ? inFlightKey(route, address, session) : `ended:${ended}`
    const full = acquireSlot(subject, route, request, reply)
    if (full !== undefined) return done(full)
    const limits =
      ended === undefined
        ? plan.of(route, request.method, session)
        : plan.ofEnded(route, request.method)
    if (limits.length === 0) return done()
    const { trail } = request
    const startedAt = limits.some(({ rate }) => counts.isExact(rate)) ? performance.now() : 0
    trail.limitsAt = startedAt
    const states = limits.map((limit): Counted => {
      const key = ended === undefined ? limit.keyOf(address, session) : limit.keyOfEnded(ended)
      return { limit, key, isCounted: false, ...counts.look(key, limit.rate) }
    })
    trail.limits = states
    count(request, states).then(() => {
      if (startedAt > 0) trail.limitsMs = performance.now() - startedAt
      done(decide(request, reply, states))
    }, done)
  }
}

const isRefusal = ({ limit, exceeded }: Counted): boolean => limit.enforced && exceeded
const isCountedRefusal = (state: Counted): boolean => state.isCounted && isRefusal(state)

function createCounting(app: FastifyInstance) {
  const { counts } = app.gateway
  const limiters = new Map<Limit, Limiter>()

  async function hit(request: FastifyRequest, { limit, key }: Counted): Promise<Counted> {
    let limiter = limiters.get(limit)
    if (limiter === undefined) limiters.set(limit, (limiter = createLimiter(app, limit.rate)))
    request.limitKey = key
    const result = await limiter(request)
    const counted = { limit, key, isCounted: true }
    if (result.isAllowed || result.isExceeded) {
      return { ...counted, ...counts.look(key, limit.rate), exceeded: !result.isAllowed }
    }
    return {
      ...counted,
      exceeded: false,
      remaining: result.remaining,
      retryMs: 0,
      resetMs: result.ttl
    }
  }

  /**
   * Counts the request by its limits in their order; by none after one that refuses it, and by no
   * other where one refuses it by what is known here.
   */
  return async (request: FastifyRequest, states: Counted[]): Promise<void> => {
    const known = states.findIndex(isRefusal)
    for (const [index, state] of states.entries()) {
      if (known !== -1 && known !== index) continue
      states[index] = await hit(request, state)
      if (isRefusal(states[index])) return
    }
  }
}

/** Turns the state of a request's limits into headers, log lines, metrics and a refusal. */
function createDecision({ config, counts, highestUse, counters, addressOf }: Gateway) {
  const { headers } = config.limits
  const sendsHeaders = (isRefused: boolean) =>
    headers === 'always' || (isRefused && headers === 'refused')

  /** Whether the route is counted by address: also with a session, at the sign-in. */
  const isByAddress = (request: FastifyRequest) =>
    request.live?.session === undefined || request.routeConfig.route === signInRoute

  function nameOf(request: FastifyRequest): string {
    if (isByAddress(request)) return request.endedSession ?? addressOf(request)
    return request.live?.session.identity.username ?? ''
  }

  function report(request: FastifyRequest, counted: Counted): void {
    const { key, exceeded, remaining, retryMs } = counted
    const { name, rate, enforced } = counted.limit
    highestUse.note(name, nameOf(request), rate.burst - remaining, exceeded)
    if (!exceeded) return
    counters.onRefused(name, !enforced)
    if (!counts.isNews(key)) return
    request.log.info(
      {
        event: 'limit.over',
        limit: name,
        route: request.routeConfig.route ?? unknownRoute,
        mode: enforced ? 'enforce' : 'shadow',
        ...(isByAddress(request)
          ? { address: addressOf(request) }
          : { user: nameOf(request), session: request.live?.session.id }),
        seconds: Math.ceil(retryMs / 1000)
      },
      enforced ? 'over a limit' : 'over a limit that is in shadow'
    )
  }

  return (
    request: FastifyRequest,
    reply: FastifyReply,
    all: readonly Counted[]
  ): GatewayError | undefined => {
    for (const counted of all) if (counted.isCounted) report(request, counted)
    const refusal = all.find(isCountedRefusal)
    const told = all.filter(({ limit }) => limit.enforced)
    if (sendsHeaders(refusal !== undefined) && told.length > 0) {
      reply.header('ratelimit-policy', policyHeader(told)).header('ratelimit', stateHeader(told))
    }
    if (refusal === undefined) return undefined
    const { limit, retryMs } = refusal
    return new GatewayError('limit.exceeded', { retryAfter: retryMs / 1000, limit: limit.name })
  }
}

/** @returns adds to the count of a key; one of 0 is forgotten */
export function countingIn(counts: Map<string, number>): (key: string, by: number) => void {
  return (key, by) => {
    const count = (counts.get(key) ?? 0) + by
    if (count > 0) counts.set(key, count)
    else counts.delete(key)
  }
}

/** Counts requests in flight: of each caller, and of routes that have a bound of their own. */
function createSlots({ config: { limits }, inFlight, counters: { onRefused } }: Gateway) {
  const maxOf = new Map(Object.entries(limits.inFlightPerRoute))
  const change = countingIn(inFlight)

  return function acquireSlot(
    subject: string,
    route: string,
    request: FastifyRequest,
    reply: FastifyReply
  ): GatewayError | undefined {
    // If the client disconnected during the lookup, `close` has fired already and the slot would
    // leak.
    if (reply.raw.closed) return undefined
    const bound = route === signInRoute ? 'inFlightSignIns' : 'inFlightPerUser'
    const max = limits[bound]
    const maxOfRoute = maxOf.get(route)
    const routeKey = `route:${route}`
    if ((inFlight.get(subject) ?? 0) >= max) {
      onRefused(bound, false)
      return new GatewayError('limit.exceeded', {
        retryAfter: 1,
        limit: bound,
        limitMax: max,
        message: 'Too many requests at the same time. Please wait for some to finish.'
      })
    }
    if (maxOfRoute !== undefined && (inFlight.get(routeKey) ?? 0) >= maxOfRoute) {
      const limit = 'inFlightPerRoute'
      onRefused(limit, false)
      return new GatewayError('overloaded', { retryAfter: 1, limit, limitMax: maxOfRoute })
    }
    change(subject, 1)
    if (maxOfRoute !== undefined) change(routeKey, 1)
    request.onResponseClose.push(() => {
      change(subject, -1)
      if (maxOfRoute !== undefined) change(routeKey, -1)
    })
    return undefined
  }
}

/** The name under which a caller's requests in flight are counted. */
function inFlightKey(route: string, address: string, user: VouchedUser | undefined): string {
  if (route === signInRoute) return `sign-in:${address}`
  return user === undefined ? `address:${address}` : `user:${identityKey(user)}`
}

/** The `RateLimit-Policy` field (draft-ietf-httpapi-ratelimit-headers-11 §3). */
function policyHeader(counted: readonly Counted[]): string {
  const seconds = (ms: number) => Math.max(1, Math.round(ms / 1000))
  return counted
    .map(({ limit: { name, rate } }) => `"${name}";q=${rate.max};w=${seconds(rate.windowMs)}`)
    .join(', ')
}

/** The `RateLimit` field: what is left of each limit, and in how many seconds it is whole again. */
function stateHeader(counted: readonly Counted[]): string {
  return counted
    .map(({ limit, remaining, resetMs }) => {
      return `"${limit.name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
    })
    .join(', ')
}
