/** Looks sessions up by the cookie's value: in the cache where that is fresh, else in the store. */
import type { CachedRecord, createEvaluator, Evaluation, Live } from './evaluate.ts'
import type { guardEpoch } from './epoch.ts'
import { keyOf } from './record.ts'
import type { createReviewWriter } from './review-writer.ts'
import type { SessionCache } from './session-cache.ts'

interface EpochCheckOptions {
  readonly store: ReturnType<typeof guardEpoch>
  readonly cache: SessionCache<CachedRecord>
  readonly evaluator: ReturnType<typeof createEvaluator>
}

export interface StoredSession {
  readonly record: CachedRecord | undefined
  readonly evaluation: Evaluation
}

/** Evaluates records against the store's epoch, also those that are ahead of the cached one. */
export function createEpochCheck({ store, cache, evaluator }: EpochCheckOptions) {
  const { parse, evaluate } = evaluator

  /** Asks the store where a session is ahead of the epoch. @throws StoreUnavailable */
  async function evaluateCurrent(
    record: CachedRecord | undefined,
    epoch: number
  ): Promise<Evaluation> {
    const isAhead = record !== undefined && 'live' in record && record.epoch > epoch
    if (!isAhead) return evaluate(record, epoch)
    cache.dropEpoch()
    return evaluate(record, await store.epochAtLeast(record.epoch))
  }

  /** The record as the store has it now, past the cache. @throws StoreUnavailable */
  async function readStored(key: string): Promise<StoredSession> {
    const [stored, epoch] = await Promise.all([store.read(key), store.epoch()])
    const record = stored && parse(key, stored)
    return { record, evaluation: await evaluateCurrent(record, epoch) }
  }

  return { evaluateCurrent, readStored }
}

interface Options extends EpochCheckOptions {
  readonly evaluateCurrent: ReturnType<typeof createEpochCheck>['evaluateCurrent']
  readonly settle: ReturnType<typeof createReviewWriter>['settle']
  readonly noteExpiry: (key: string, evaluation: Evaluation) => void
  /** Whether a session may have more time than the cache says. */
  readonly mayBeLater: (live: Live) => boolean
}

export function createLookup(options: Options) {
  const { store, cache, evaluateCurrent, settle, noteExpiry, mayBeLater } = options
  const { evaluate } = options.evaluator
  const isCurrent = (record: CachedRecord) => !('live' in record) || !mayBeLater(record.live)

  /**
   * The session behind an id, or why there is none. A lookup does not keep it from going idle. Its
   * idle end is that of the store, to a touch interval.
   * @throws StoreUnavailable
   */
  const get = async (secretId: string): Promise<Evaluation> => await getByKey(keyOf(secretId))

  /** The same by the store's name for it. @throws StoreUnavailable */
  async function getByKey(key: string): Promise<Evaluation> {
    const [record, epoch] = await Promise.all([cache.read(key, isCurrent), cache.epoch()])
    const evaluation = await evaluateCurrent(record, epoch)
    if (record === undefined || !('live' in record)) return evaluation
    if ('live' in evaluation) return await settle(record, evaluation)
    // A cached record says that the session is over: nobody is turned away before the store says
    // so.
    cache.drop(key)
    const fresh = await cache.read(key)
    const current = await evaluateCurrent(fresh, await store.epoch())
    noteExpiry(key, current)
    return await settle(fresh, current)
  }

  /**
   * The live session, where it need not be asked for in the store. Its idle end may be too early
   * where `mayBeLater` says so: callers that report it, rather than use the session, call `get`.
   */
  function getCachedByKey(key: string): Live | undefined {
    const cached = cache.getCached(key)
    if (cached === undefined) return undefined
    const evaluation = evaluate(cached.value, cached.epoch)
    return 'live' in evaluation ? evaluation.live : undefined
  }

  return { get, getByKey, getCachedByKey }
}
