/**
 * Limits that count sign-in attempts, by @fastify/rate-limit: all of the plugin that is in use.
 *
 * It counts an attempt in our counters by key and window, and compares the count with `max`. It
 * adds no hook, no header and no reply: a password's attempt is counted inside the handler, once
 * its body is read, and refused with the gateway's own errors. Other limits do without it, since
 * it asks its store for every request, where leases let most requests pass without a round trip.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import rateLimit, { type FastifyRateLimitStore } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { Count, Counters } from '../../limits/counting/counters.ts'
import { isOfSignIn } from '../../limits/counting/plan.ts'
import type { SignIn } from './lockout.ts'

export interface AttemptLimits {
  /**
   * Counts a sign-in by each limit, one after the other; none after the one that refuses it.
   * @returns takes back what limits of refused attempts only (`refusedOnly`) counted; all of it,
   *   or only what counts accounts
   * @throws GatewayError `limit.exceeded` for an address, `login.locked` for an account
   */
  readonly count: (
    request: FastifyRequest,
    signIn: SignIn
  ) => Promise<(of: 'all' | 'account') => Promise<void>>
}

interface Hit {
  readonly key: string
  readonly count: Count | undefined
  readonly isOfAccount: boolean
}

interface Options {
  readonly config: LimitsConfig
  readonly counters: Counters
  /**
   * Called with the limit's name for each refusal, and for what a limit in shadow would have
   * refused.
   */
  readonly onRefused: (limit: string, inShadow: boolean) => void
}

interface Limiter {
  readonly name: string
  readonly limit: LimitConfig
  readonly run: ReturnType<FastifyInstance['createRateLimit']>
}

/**
 * The attempt, which the plugin's functions do not take, and its count, which they do not return.
 */
interface RunningCount {
  readonly signIn: SignIn
  count?: Count
}

const running = new AsyncLocalStorage<RunningCount>()
const subjectsOf = ({ by }: LimitConfig) => by

export async function createAttemptLimits(
  app: FastifyInstance,
  { config, counters, onRefused }: Options
): Promise<AttemptLimits> {
  await app.register(rateLimit, { global: false, store: storeOn(counters) })
  const limiters = Object.entries(config.limits)
    .filter(([, limit]) => limit.mode !== 'off' && isOfSignIn(limit))
    .map(([name, limit]) => createLimiter(app, name, limit))

  return {
    count: async (request, signIn) => {
      const hits: Hit[] = []
      for (const { name, limit, run } of limiters) {
        // A browser that signed in before is counted by itself alone.
        if (signIn.knownBrowser !== undefined && limit.refusedOnly) continue
        const current: RunningCount = { signIn }
        const result = await running.run(current, () => run(request))
        const isOfAccount = subjectsOf(limit).includes('account')
        if (limit.refusedOnly) hits.push({ key: result.key, count: current.count, isOfAccount })
        if (result.isAllowed || !result.isExceeded) continue
        onRefused(name, limit.mode === 'shadow')
        if (limit.mode !== 'enforce') continue
        const code = isOfAccount ? 'login.locked' : 'limit.exceeded'
        const retryAfter = Math.max(1, result.ttlInSeconds)
        throw new GatewayError(code, { retryAfter, limit: name, limitMax: limit.max })
      }
      return async of => {
        const refunded = hits.filter(({ isOfAccount }) => of === 'all' || isOfAccount)
        await Promise.all(refunded.map(({ key, count }) => counters.refund(key, count)))
      }
    }
  }
}

/** Limiters share one key space, so each key begins with the limit's name. */
function createLimiter(app: FastifyInstance, name: string, limit: LimitConfig): Limiter {
  const subjects = subjectsOf(limit)
  const keyOf = ({ account, address }: SignIn) =>
    [
      ...(subjects.includes('account') ? [account] : []),
      ...(subjects.includes('address') ? [address] : [])
    ].join(' ')
  const run = app.createRateLimit({
    keyGenerator: () => `${name}:${keyOf((running.getStore() as RunningCount).signIn)}`,
    max: limit.max,
    timeWindow: limit.window
  })
  return { name, limit, run }
}

/** Our counters as the plugin's store. */
function storeOn(counters: Counters): new () => FastifyRateLimitStore {
  return class CounterStore {
    incr(
      key: string,
      done: (error: Error | null, count?: { current: number; ttl: number }) => void,
      windowMs?: number
    ): void {
      const current = running.getStore()
      counters.hit(key, windowMs ?? 60_000).then(
        count => {
          if (current !== undefined) current.count = count
          done(null, count)
        },
        (error: Error) => done(error)
      )
    }

    child(): CounterStore {
      return this
    }
  }
}
