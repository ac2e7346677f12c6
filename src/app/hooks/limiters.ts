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

/** Counts a request, unless its limit is exceeded. */
export type Limiter = ReturnType<FastifyInstance['createRateLimit']>

interface LimiterOptions extends CreateRateLimitOptions {
  readonly rate: Rate
}

export async function registerRateLimit(app: FastifyInstance): Promise<void> {
  app.decorateRequest('limitKey', '')
  await app.register(rateLimit, { global: false, store: storeOver(app.gateway.counts) })
}

/** @returns counts a request under its `limitKey` */
export function createLimiter(app: FastifyInstance, rate: Rate): Limiter {
  const options: LimiterOptions = {
    max: rate.burst,
    timeWindow: rate.windowMs,
    keyGenerator: ({ limitKey }: FastifyRequest) => limitKey,
    rate
  }
  return app.createRateLimit(options)
}

type Done = Parameters<FastifyRateLimitStore['incr']>[1]

/** The plugin compares `current` with `max`, the size of the bucket. */
function storeOver(counts: SharedCounts): new () => FastifyRateLimitStore {
  return class CountsStore {
    readonly #rate: Rate | undefined

    constructor(rate?: Rate) {
      this.#rate = rate
    }

    incr(key: string, done: Done): void {
      const rate = this.#rate as Rate
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
      return new CountsStore((options as LimiterOptions).rate)
    }
  } as new () => FastifyRateLimitStore
}
