/**
 * Each limit as a limiter of @fastify/rate-limit over our counts. It adds no hook, no header and no
 * reply: refusals have the gateway's own errors.
 */
import rateLimit, {
  type CreateRateLimitOptions,
  type FastifyRateLimitStore
} from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Rate, Verdict } from '../../limits/gcra.ts'
import type { SharedCounts } from '../../limits/shared-counts.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that the next limiter counts. */
    limitKey: string
  }
}

/** Counts a request under its `limitKey`, unless its limit is exceeded. */
export type Limiter = ReturnType<FastifyInstance['createRateLimit']>

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

export function createLimiter(app: FastifyInstance, rate: Rate): Limiter {
  const { counts } = app.gateway
  const options: LimiterOptions = { max: rate.burst, timeWindow: rate.windowMs, counts, rate }
  return app.createRateLimit(options)
}

class CountsStore implements FastifyRateLimitStore {
  readonly #options: LimiterOptions

  constructor(options: LimiterOptions) {
    this.#options = options
  }

  /** The plugin compares `current` with `max`, the size of the bucket. */
  incr(key: string, done: Parameters<FastifyRateLimitStore['incr']>[1]): void {
    const { counts, rate } = this.#options
    const answer = ({ exceeded, remaining, retryMs, resetMs }: Verdict) =>
      done(null, {
        current: exceeded ? rate.burst + 1 : rate.burst - remaining,
        ttl: exceeded ? retryMs : resetMs
      })
    const verdict = counts.hit(key, rate)
    if (verdict instanceof Promise) verdict.then(answer, (error: Error) => done(error))
    else answer(verdict)
  }

  child(options: object): CountsStore {
    return new CountsStore(options as LimiterOptions)
  }
}
