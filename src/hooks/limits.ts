/** Whom a limit counts, and what a refused request gets. */
import rateLimit, { normalizeIP, type CreateRateLimitOptions, type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../config/limits.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Counters } from '../limits/counters.ts'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import { liveSession } from './session.ts'

export interface SignInAttempt {
  /** Takes back what the attempt was counted, once it turned out right. */
  readonly giveBack: () => Promise<void>
}

export interface Limits {
  /** A hook, after the session's. */
  readonly check: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  /**
   * Counts a sign-in before its password is looked at, so that parallel guesses do not slip past.
   * @throws GatewayError `limit.exceeded` for an address, `login.locked` for an account
   */
  readonly signIn: (request: FastifyRequest, account: string) => Promise<SignInAttempt>
}

interface Options {
  readonly config: LimitsConfig
  readonly counters: Counters
  /** Requests in flight, by user or address; outlives a generation, as requests do. */
  readonly inFlight: Map<string, number>
  /** Told of each refusal, by the limit's name. */
  readonly onRefused: (limit: string) => void
}

interface Limiter {
  readonly name: string
  readonly limit: LimitConfig
  readonly count: (request: FastifyRequest) => Promise<{ key: string, max: number, remaining: number, ttlInSeconds: number, exceeded: boolean }>
}

const accountTried = Symbol('account')
type WithAccount = FastifyRequest & { [accountTried]?: string }

export async function createLimits (app: FastifyInstance, { config, counters, inFlight, onRefused }: Options): Promise<Limits> {
  await app.register(rateLimit, { global: false, store: storeOn(counters) })
  const limiters = Object.entries(config.limits).map(([name, limit]) => createLimiter(app, name, limit))
  const holds = ({ limit }: Limiter, route: string) => limit.routes.length === 0 || limit.routes.includes(route)
  const byRoute = new Map<string, { user: Limiter[], address: Limiter[] }>()
  const limitersOf = (route: string) => {
    let found = byRoute.get(route)
    if (found === undefined) {
      const here = limiters.filter(limiter => holds(limiter, route) && !limiter.limit.refusedOnly)
      byRoute.set(route, found = { user: here.filter(({ limit }) => limit.by === 'user'), address: here.filter(({ limit }) => limit.by === 'address') })
    }
    return found
  }
  const signInLimiters = limiters.filter(limiter => holds(limiter, 'login') && (limiter.limit.refusedOnly || limiter.limit.by === 'account'))

  async function check (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const user = liveSession(request)?.identity.id
    enter(user === undefined ? `address:${addressOf(request)}` : `user:${user}`, reply)
    const { user: userLimiters, address } = limitersOf(request.routeOptions.config.route ?? unknownRoute)
    for (const limiter of user === undefined ? address : userLimiters) {
      const { exceeded, max, remaining, ttlInSeconds } = await limiter.count(request)
      if (exceeded) {
        onRefused(limiter.name)
        throw refusal('limit.exceeded', max, ttlInSeconds)
      }
      reply.header('ratelimit-limit', max).header('ratelimit-remaining', remaining).header('ratelimit-reset', ttlInSeconds)
    }
  }

  function enter (who: string, reply: FastifyReply): void {
    const now = inFlight.get(who) ?? 0
    if (now >= config.inFlightPerUser) {
      onRefused('inFlightPerUser')
      throw new GatewayError('limit.exceeded', { retryAfter: 1, message: 'Too many requests at the same time. Please wait for some to finish.' })
    }
    inFlight.set(who, now + 1)
    reply.raw.once('close', () => {
      const left = (inFlight.get(who) ?? 1) - 1
      if (left > 0) inFlight.set(who, left)
      else inFlight.delete(who)
    })
  }

  async function signIn (request: WithAccount, account: string): Promise<SignInAttempt> {
    request[accountTried] = accountKey(account)
    const counted: string[] = []
    const giveBack = async () => { await Promise.all(counted.map(key => counters.giveBack(key))) }
    for (const { name, limit, count } of signInLimiters) {
      const { key, exceeded, max, ttlInSeconds } = await count(request)
      if (exceeded) {
        onRefused(name)
        throw refusal(limit.by === 'account' ? 'login.locked' : 'limit.exceeded', max, ttlInSeconds)
      }
      if (limit.refusedOnly) counted.push(key)
    }
    return { giveBack }
  }

  return { check, signIn }
}

function createLimiter (app: FastifyInstance, name: string, limit: LimitConfig): Limiter {
  const whom: Record<LimitConfig['by'], (request: WithAccount) => string> = {
    address: addressOf,
    user: request => liveSession(request)?.identity.id ?? '',
    account: request => request[accountTried] ?? ''
  }
  // Limiters share one key space, so each key begins with the limit's name.
  const options: CreateRateLimitOptions = { keyGenerator: request => `${name}:${whom[limit.by](request)}`, max: limit.max, timeWindow: limit.window }
  const run = app.createRateLimit(options)
  return {
    name,
    limit,
    count: async request => {
      const result = await run(request)
      if (result.isAllowed) return { key: result.key, max: limit.max, remaining: limit.max, ttlInSeconds: 0, exceeded: false }
      return { key: result.key, max: limit.max, remaining: result.remaining, ttlInSeconds: result.ttlInSeconds, exceeded: result.isExceeded }
    }
  }
}

/** IPv4 as it is, also in its IPv6 dress; of an IPv6 address the /64, which is what one customer has. */
function addressOf (request: FastifyRequest): string {
  const address = clientAddress(request)
  // A socket that is gone has no address any more.
  return address === '' ? 'gone' : normalizeIP(address, 64)
}

/** Spellings of one account share one counter: width, case, blanks and invisible characters do not count. */
function accountKey (typed: string): string {
  return typed.normalize('NFKD').replace(/[\p{C}\p{Z}\p{M}]/gu, '').toLowerCase().slice(0, 255)
}

function refusal (code: ErrorCode, max: number, seconds: number): GatewayError {
  const retryAfter = Math.max(1, seconds)
  return new GatewayError(code, { retryAfter, headers: { 'ratelimit-limit': String(max), 'ratelimit-remaining': '0', 'ratelimit-reset': String(retryAfter) } })
}

/** Our counters as the plugin's store. */
function storeOn (counters: Counters): new () => FastifyRateLimitStore {
  return class CounterStore {
    incr (key: string, done: (error: Error | null, count?: { current: number, ttl: number }) => void, windowMs?: number): void {
      counters.hit(key, windowMs ?? 60_000).then(count => done(null, count), (error: Error) => done(error))
    }

    child (): CounterStore { return this }
  }
}
