/**
 * Limits of requests: finds those of a request, and refuses it when one is exceeded. They are
 * counted by @fastify/rate-limit over our counts, which adds no hook, no header and no reply.
 */
import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { Verdict } from '../../limits/gcra.ts'
import { compilePlan, type Limit, signInRoute } from '../../limits/plan.ts'
import { identityKey, type Session } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from './address.ts'
import { type RequestHook, unknownRoute } from './context.ts'

/** The state of a limit after the request, and whether it was counted there. */
interface Counted extends Verdict {
  readonly limit: Limit
  readonly key: string
  readonly isCounted: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The limit that is counted next. */
    counting: Counted | undefined
  }
}

const isRefusal = ({ limit, exceeded }: Counted): boolean => limit.enforced && exceeded

/** The public id of the session that the cookie names, where that is over. */
const endedIdOf = ({ ended, trail }: FastifyRequest) => ended && trail.session

/**
 * Counts `request.counting`, whose members it sets. The plugin's key is that state, since a text
 * would not have the rate.
 */
export async function registerRateLimit(app: FastifyInstance): Promise<void> {
  const { counts } = app.gateway
  app.decorateRequest('counting', undefined)
  await app.register(rateLimit, {
    global: false,
    max: 0,
    keyGenerator: ({ counting }: FastifyRequest) => counting as never,
    store: class implements FastifyRateLimitStore {
      incr(key: string, done: Parameters<FastifyRateLimitStore['incr']>[1]): void {
        const state = key as unknown as Counted
        const set = (verdict: Verdict) => {
          Object.assign(state, verdict, { isCounted: true })
          done(null, { current: Number(verdict.exceeded), ttl: verdict.resetMs })
        }
        const verdict = counts.hit(state.key, state.limit.rate)
        if (verdict instanceof Promise) verdict.then(set, (error: Error) => done(error))
        else set(verdict)
      }

      child(): FastifyRateLimitStore {
        return this
      }
    }
  })
}

/**
 * A hook after the session's.
 * @param app has the rate-limit plugin
 */
export function createLimits(app: FastifyInstance): RequestHook {
  const { config, counts } = app.gateway
  const plan = compilePlan(config.limits)
  const acquireSlot = createSlots(app.gateway)
  const count = app.createRateLimit()
  const decide = createDecision(app.gateway)

  /**
   * Counts a request by its limits in their order; by none after one that refuses it, and by no
   * other where one refuses it by what is known here.
   */
  async function countAll(request: FastifyRequest, states: readonly Counted[]): Promise<void> {
    const known = states.find(isRefusal)
    for (const state of known === undefined ? states : [known]) {
      request.counting = state
      await count(request)
      if (isRefusal(state)) return
    }
  }

  return function checkLimits(request, reply, done) {
    const session = request.live?.session
    const address = countedAddress(request)
    const { route = unknownRoute, access } = request.routeConfig
    // A session that ended is counted by itself: its tabs take nothing from neighbours.
    const ended = session === undefined && access !== 'public' ? endedIdOf(request) : undefined
    const subject = ended === undefined ? inFlightKey(route, address, session) : `ended:${ended}`
    const full = acquireSlot(subject, request, reply)
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
    countAll(request, states).then(() => {
      if (startedAt > 0) trail.limitsMs = performance.now() - startedAt
      done(decide(request, reply, states))
    }, done)
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
    if (enforced) counters.onRefused(name)
    else counters.onShadowed(name)
    if (!counts.isNews(key)) return
    const who =
      user === undefined ? { address: countedAddress(request) } : { user, session: session?.id }
    const mode = enforced ? 'enforce' : 'shadow'
    const seconds = Math.ceil(retryMs / 1000)
    const fields = { event: 'limit.over', limit: name, route, mode, ...who, seconds }
    request.log.info(fields, 'over a limit')
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

/**
 * Bounds what runs at the same time, by keys.
 * @param counts of those that run
 * @returns takes a place, and returns what gives it back, once; undefined where none is free
 */
export function slotsIn(counts: Map<string, number>) {
  return (key: string, max: number): (() => void) | undefined => {
    const count = counts.get(key) ?? 0
    if (count >= max) return undefined
    counts.set(key, count + 1)
    return () => {
      const left = (counts.get(key) ?? 0) - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    }
  }
}

/** Bounds the requests in flight of each caller. */
function createSlots({ config: { limits }, inFlight, counters: { onRefused } }: Gateway) {
  const take = slotsIn(inFlight)

  return (
    subject: string,
    { routeConfig, onResponseClose }: FastifyRequest,
    reply: FastifyReply
  ): GatewayError | undefined => {
    // If the client disconnected during the lookup, `close` has fired already and the slot would
    // leak.
    if (reply.raw.closed) return undefined
    const limit = routeConfig.route === signInRoute ? 'inFlightSignIns' : 'inFlightPerUser'
    const limitMax = limits[limit]
    const release = take(subject, limitMax)
    if (release === undefined) {
      onRefused(limit)
      const message = 'Too many requests at the same time. Please wait for some to finish.'
      return new GatewayError('limit.exceeded', { retryAfter: 1, limit, limitMax, message })
    }
    onResponseClose.push(release)
    return undefined
  }
}

/** The name under which a caller's requests in flight are counted. */
function inFlightKey(route: string, address: string, user: Session | undefined): string {
  if (route === signInRoute) return `sign-in:${address}`
  return user === undefined ? `address:${address}` : `user:${identityKey(user)}`
}
