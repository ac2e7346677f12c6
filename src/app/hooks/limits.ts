/**
 * Limits of requests: finds those of a request, and refuses it when one is exceeded. Each is a
 * limiter of @fastify/rate-limit over our counts, which adds no hook, no header and no reply.
 */
import rateLimit, {
  type CreateRateLimitOptions,
  type FastifyRateLimitStore
} from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { Rate, Verdict } from '../../limits/gcra.ts'
import { compilePlan, type Limit, signInRoute } from '../../limits/plan.ts'
import type { SharedCounts } from '../../limits/shared-counts.ts'
import { identityKey, publicId, type Session } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from './address.ts'
import { type RequestHook, unknownRoute } from './context.ts'

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
  const { config, counts } = app.gateway
  const plan = compilePlan(config.limits)
  const acquireSlot = createSlots(app.gateway)
  const count = createCounting(app)
  const decide = createDecision(app.gateway)

  return function checkLimits(request, reply, done) {
    const session = request.live?.session
    const address = countedAddress(request)
    const { route = unknownRoute, access } = request.routeConfig
    // A session that ended is counted by itself: its tabs take nothing from neighbours.
    const ended = session === undefined && access !== 'public' ? endedIdOf(request) : undefined
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

/** The public id of the session that the cookie names, where that is over. */
function endedIdOf({ ended }: FastifyRequest): string | undefined {
  return ended && publicId(ended.key)
}

const isRefusal = ({ limit, exceeded }: Counted): boolean => limit.enforced && exceeded

/**
 * Counts a request by its limits in their order; by none after one that refuses it, and by no
 * other where one refuses it by what is known here.
 */
function createCounting(app: FastifyInstance) {
  const limiters = new Map<Limit, Limiter>()
  return async (request: FastifyRequest, states: Counted[]): Promise<void> => {
    const known = states.findIndex(isRefusal)
    for (const [index, { limit, key }] of states.entries()) {
      if (known !== -1 && known !== index) continue
      let limiter = limiters.get(limit)
      if (limiter === undefined) limiters.set(limit, (limiter = createLimiter(app, limit.rate)))
      const counted = { limit, key, isCounted: true, ...(await limiter(request, key)) }
      states[index] = counted
      if (isRefusal(counted)) return
    }
  }
}

/** Turns the state of a request's limits into headers, log lines, metrics and a refusal. */
function createDecision({ counts, highestUse, counters }: Gateway) {
  function report(request: FastifyRequest, counted: Counted): void {
    const { key, exceeded, remaining, retryMs } = counted
    const { name, rate, enforced } = counted.limit
    const { route = unknownRoute } = request.routeConfig
    const session = request.live?.session
    // The sign-in counts by address also with a session.
    const user = route === signInRoute ? undefined : session?.identity.username
    const caller = user ?? endedIdOf(request) ?? countedAddress(request)
    highestUse.note(name, caller, rate.burst - remaining, exceeded)
    if (!exceeded) return
    counters.onRefused(name, !enforced)
    if (!counts.isNews(key)) return
    request.log.info(
      {
        event: 'limit.over',
        limit: name,
        route,
        mode: enforced ? 'enforce' : 'shadow',
        ...(user === undefined
          ? { address: countedAddress(request) }
          : { user, session: session?.id }),
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
    const refusal = all.find(state => state.isCounted && isRefusal(state))
    setLimitHeaders(reply, all)
    if (refusal === undefined) return undefined
    const { limit, retryMs } = refusal
    return new GatewayError('limit.exceeded', { retryAfter: retryMs / 1000, limit: limit.name })
  }
}

/** draft-ietf-httpapi-ratelimit-headers-11: the limits, and what is left of each. */
function setLimitHeaders(reply: FastifyReply, all: readonly Counted[]): void {
  const enforced = all.filter(({ limit }) => limit.enforced)
  if (enforced.length === 0) return
  const policies = enforced.map(({ limit: { name, rate } }) => {
    return `"${name}";q=${rate.max};w=${Math.max(1, Math.round(rate.windowMs / 1000))}`
  })
  const states = enforced.map(({ limit: { name }, remaining, resetMs }) => {
    return `"${name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
  })
  reply.header('ratelimit-policy', policies.join(', ')).header('ratelimit', states.join(', '))
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
      onRefused(bound)
      return new GatewayError('limit.exceeded', {
        retryAfter: 1,
        limit: bound,
        limitMax: max,
        message: 'Too many requests at the same time. Please wait for some to finish.'
      })
    }
    if (maxOfRoute !== undefined && (inFlight.get(routeKey) ?? 0) >= maxOfRoute) {
      const limit = 'inFlightPerRoute'
      onRefused(limit)
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
function inFlightKey(route: string, address: string, user: Session | undefined): string {
  if (route === signInRoute) return `sign-in:${address}`
  return user === undefined ? `address:${address}` : `user:${identityKey(user)}`
}

/** Counts a request under a key, unless the limit is exceeded. */
type Limiter = (request: FastifyRequest, key: string) => Promise<Verdict>

interface LimiterOptions extends CreateRateLimitOptions {
  readonly counts: SharedCounts
  readonly rate: Rate
}

export async function registerRateLimit(app: FastifyInstance): Promise<void> {
  app.decorateRequest('limitKey', '')
  await app.register(rateLimit, {
    global: false,
    store: CountsStore as new (options: object) => CountsStore,
    keyGenerator: ({ limitKey }: FastifyRequest) => limitKey
  })
}

function createLimiter(app: FastifyInstance, rate: Rate): Limiter {
  const { counts } = app.gateway
  const options: LimiterOptions = { max: rate.burst, timeWindow: rate.windowMs, counts, rate }
  const count = app.createRateLimit(options)
  return async (request, key) => {
    request.limitKey = key
    const result = await count(request)
    if (result.isAllowed || result.isExceeded) {
      return { ...counts.look(key, rate), exceeded: !result.isAllowed }
    }
    return { exceeded: false, remaining: result.remaining, retryMs: 0, resetMs: result.ttl }
  }
}

class CountsStore implements FastifyRateLimitStore {
  readonly #options: LimiterOptions

  constructor(options: LimiterOptions) {
    this.#options = options
  }

  /** The plugin compares `current` with `max`, the size of the bucket. */
  incr(key: string, done: Parameters<FastifyRateLimitStore['incr']>[1]): void {
    const { counts, rate } = this.#options
    const answer = ({ exceeded, remaining, resetMs }: Verdict) =>
      done(null, { current: rate.burst + (exceeded ? 1 : -remaining), ttl: resetMs })
    const verdict = counts.hit(key, rate)
    if (verdict instanceof Promise) verdict.then(answer, (error: Error) => done(error))
    else answer(verdict)
  }

  child(options: object): CountsStore {
    return new CountsStore(options as LimiterOptions)
  }
}
