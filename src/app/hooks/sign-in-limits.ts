/** How often a password may be tried: of an address, and of an account from anywhere. */
import { AsyncLocalStorage } from 'node:async_hooks'
import rateLimit, {
  type CreateRateLimitOptions,
  type FastifyRateLimitStore
} from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { Count, Counters } from '../../limits/counting/counters.ts'
import { accountKey } from '../../limits/lockout/account.ts'
import { createCountedAddress } from './address.ts'
import type { Lockout } from './lockout.ts'

export interface SignInAttempt {
  /** The password was wrong. */
  readonly refused: () => Promise<void>
  /** It was not, or could not be looked at: takes back what the attempt was counted. */
  readonly refund: () => Promise<void>
  /** It turned out right: the browser is no stranger any more. */
  readonly remember: (reply: FastifyReply) => void
}

export interface SignInLimits {
  /**
   * Counts a sign-in before its password is looked at, so that parallel guesses do not slip past.
   * Whoever signed in with this browser before is counted by the browser alone.
   * @throws GatewayError `limit.exceeded` for an address, `login.locked` for an account
   */
  readonly attempt: (request: FastifyRequest, account: string) => Promise<SignInAttempt>
}

interface Options {
  readonly config: LimitsConfig
  readonly counters: Counters
  readonly lockout: Lockout
  /** Told of each refusal, by the limit's name, and of what a limit in shadow would have refused. */
  readonly onRefused: (limit: string, inShadow: boolean) => void
}

interface Counted {
  readonly key: string
  readonly ttlInSeconds: number
  readonly exceeded: boolean
  readonly count: Count | undefined
}

interface Limiter {
  readonly name: string
  readonly limit: LimitConfig
  readonly count: (request: FastifyRequest) => Promise<Counted>
}

const accountTried = Symbol('account')
type WithAccount = FastifyRequest & { [accountTried]?: string }

export async function createSignInLimits(
  app: FastifyInstance,
  { config, counters, lockout, onRefused }: Options
): Promise<SignInLimits> {
  await app.register(rateLimit, { global: false, store: storeOn(counters) })
  const countedAddress = createCountedAddress(config.ipv6Prefix)
  const limiters = Object.entries(config.limits)
    .filter(
      ([, limit]) => limit.mode !== 'off' && (limit.refusedOnly || limit.by.includes('account'))
    )
    .map(([name, limit]) => createLimiter(app, name, limit, countedAddress))

  async function attempt(request: WithAccount, account: string): Promise<SignInAttempt> {
    const key = accountKey(account)
    request[accountTried] = key
    const guarded = await lockout.attempt(request, {
      username: account,
      account: key,
      address: countedAddress(request)
    })
    const hits: Array<{ readonly key: string; readonly count: Count | undefined }> = []
    try {
      for (const { name, limit, count } of limiters) {
        if (guarded.isKnown && limit.refusedOnly) continue
        const { exceeded, ttlInSeconds, ...hit } = await count(request)
        if (exceeded) onRefused(name, limit.mode === 'shadow')
        if (exceeded && limit.mode === 'enforce') {
          const code = limit.by.includes('account') ? 'login.locked' : 'limit.exceeded'
          throw new GatewayError(code, { retryAfter: Math.max(1, ttlInSeconds) })
        }
        if (limit.refusedOnly) hits.push(hit)
      }
    } catch (error) {
      await guarded.refund()
      throw error
    }
    return {
      refused: guarded.refused,
      refund: async () => {
        const all = hits.map(({ key: counter, count }) => counters.refund(counter, count))
        await Promise.all([guarded.refund(), ...all])
      },
      remember: guarded.remember
    }
  }

  return { attempt }
}

const currentHit = new AsyncLocalStorage<Hit>()

function createLimiter(
  app: FastifyInstance,
  name: string,
  limit: LimitConfig,
  countedAddress: (request: FastifyRequest) => string
): Limiter {
  const whom = limit.by
  const keyOf = (request: WithAccount) =>
    [
      ...(whom.includes('account') ? [request[accountTried] ?? ''] : []),
      ...(whom.includes('address') ? [countedAddress(request)] : [])
    ].join(' ')
  // Limiters share one key space, so each key begins with the limit's name.
  const options: CreateRateLimitOptions = {
    keyGenerator: request => `${name}:${keyOf(request)}`,
    max: limit.max,
    timeWindow: limit.window
  }
  const run = app.createRateLimit(options)
  return {
    name,
    limit,
    count: async request => {
      const hit: Hit = {}
      const result = await currentHit.run(hit, () => run(request))
      const { key } = result
      const { count } = hit
      if (result.isAllowed) return { key, ttlInSeconds: 0, exceeded: false, count }
      return { key, ttlInSeconds: result.ttlInSeconds, exceeded: result.isExceeded, count }
    }
  }
}

/** What the counters said, which the plugin does not hand on. */
interface Hit {
  count?: Count
}

/** Our counters as the plugin's store. */
function storeOn(counters: Counters): new () => FastifyRateLimitStore {
  return class CounterStore {
    incr(
      key: string,
      done: (error: Error | null, count?: { current: number; ttl: number }) => void,
      windowMs?: number
    ): void {
      const hit = currentHit.getStore() ?? {}
      counters.hit(key, windowMs ?? 60_000).then(
        count => {
          hit.count = count
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
