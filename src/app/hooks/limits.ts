/** Limits of requests, counted by @fastify/rate-limit over our counts, without hooks of its own. */
import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { Verdict } from '../../limits/gcra.ts'
import { compilePlan, keyOfEnded, type Limit, signInRoute } from '../../limits/plan.ts'
import { identityKey } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from './address.ts'
import type { RequestHook } from './context.ts'

interface Counted extends Verdict {
  readonly limit: Limit
  readonly key: string
}

declare module 'fastify' {
  interface FastifyRequest {
    counting: Counted | undefined
  }
}

const isRefusal = ({ limit, exceeded }: Counted): boolean => limit.enforced && exceeded

/** The public id of the session that the cookie names, where that is over. */
const endedIdOf = ({ ended, trail }: FastifyRequest) => ended && trail.session

/** The plugin's key is `request.counting`, the state: a text would not have the rate. */
async function createLimiter(app: FastifyInstance) {
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
          Object.assign(state, verdict)
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
  return app.createRateLimit()
}

export async function createLimits(app: FastifyInstance): Promise<RequestHook> {
  const count = await createLimiter(app)
  const { gateway } = app
  const { config, counts } = gateway
  const plan = compilePlan(config.limits)

  /** In their order, by none after one that refuses; by that alone which is known to refuse. */
  async function countAll(request: FastifyRequest, states: readonly Counted[]): Promise<void> {
    const known = states.find(isRefusal)
    for (const state of known === undefined ? states : [known]) {
      request.counting = state
      await count(request)
      report(gateway, request, state)
      if (isRefusal(state)) throw refusalOf(state)
    }
  }

  return function checkLimits(request, reply, done) {
    const session = request.live?.session
    const { trail, method } = request
    const { route } = trail
    // A session that ended is counted by itself: its tabs take nothing from neighbours.
    const isPublic = request.routeConfig.access === 'public'
    const ended = session === undefined && !isPublic ? endedIdOf(request) : undefined
    acquireSlot(request, reply, ended)
    const limits =
      ended === undefined ? plan.of(route, method, session) : plan.ofEnded(route, method)
    if (limits.length === 0) return done()
    const startedAt = limits.some(({ rate }) => counts.isExact(rate)) ? performance.now() : 0
    trail.limitsAt = startedAt
    const address = countedAddress(request)
    const states = limits.map((limit): Counted => {
      const key =
        ended === undefined ? limit.keyOf(route, address, session) : keyOfEnded(limit, ended)
      return { limit, key, ...counts.look(key, limit.rate) }
    })
    trail.limits = states
    const end = (error?: Error) => {
      if (startedAt > 0) trail.limitsMs = performance.now() - startedAt
      setLimitHeaders(reply, states)
      done(error)
    }
    countAll(request, states).then(() => end(), end)
  }
}

function refusalOf({ limit, retryMs }: Counted): GatewayError {
  return new GatewayError('limit.exceeded', { retryAfter: retryMs / 1000, limit: limit.name })
}

function report(
  { counts, highestUse, counters }: Gateway,
  request: FastifyRequest,
  { key, exceeded, remaining, retryMs, limit: { name, rate, enforced } }: Counted
): void {
  const { route } = request.trail
  const session = request.live?.session
  const address = countedAddress(request)
  // The sign-in counts by address also with a session.
  const user = route === signInRoute ? undefined : session?.identity.username
  highestUse.note(name, user ?? endedIdOf(request) ?? address, rate.burst - remaining, exceeded)
  if (!exceeded) return
  if (enforced) counters.onRefused(name)
  else counters.onShadowed(name)
  if (!counts.isNews(key)) return
  const who = user === undefined ? { address } : { user, session: session?.id }
  const mode = enforced ? 'enforce' : 'shadow'
  const seconds = Math.ceil(retryMs / 1000)
  const fields = { event: 'limit.over', limit: name, route, mode, ...who, seconds }
  request.log.info(fields, 'over a limit')
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

/** @returns what gives the place back, once; undefined where none is free */
export function takeSlot(counts: Map<string, number>, key: string, max: number) {
  const count = counts.get(key) ?? 0
  if (count >= max) return undefined
  counts.set(key, count + 1)
  return () => {
    const left = (counts.get(key) ?? 0) - 1
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }
}

/** @returns what gives the place back, once. @throws GatewayError `limit.exceeded` */
export function takePlace(
  { inFlight, counters }: Gateway,
  key: string,
  bound: { limit: string; limitMax: number; message: string }
): () => void {
  const release = takeSlot(inFlight, key, bound.limitMax)
  if (release !== undefined) return release
  counters.onRefused(bound.limit)
  throw new GatewayError('limit.exceeded', { retryAfter: 1, ...bound })
}

function acquireSlot(request: FastifyRequest, reply: FastifyReply, ended: string | undefined) {
  // If the client left during the lookup, `close` has fired already and the slot would leak.
  if (reply.raw.closed) return
  const { gateway } = request.server
  const isSignIn = request.trail.route === signInRoute
  const limit = isSignIn ? 'inFlightSignIns' : 'inFlightPerUser'
  const limitMax = gateway.config.limits[limit]
  const message = 'Too many requests at the same time. Please wait for some to finish.'
  const key = ended === undefined ? inFlightKey(request, isSignIn) : `ended:${ended}`
  request.onResponseClose.push(takePlace(gateway, key, { limit, limitMax, message }))
}

function inFlightKey(request: FastifyRequest, isSignIn: boolean): string {
  const session = request.live?.session
  if (!isSignIn && session !== undefined) return `user:${identityKey(session)}`
  return `${isSignIn ? 'sign-in' : 'address'}:${countedAddress(request)}`
}
