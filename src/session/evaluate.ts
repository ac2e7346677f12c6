/** Evaluates a store's record: a live session, or the reason it is not. */
import type { Duration } from '../config/schema/primitives.ts'
import { type EndReason, endReasonOf, type Session } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import type { Review, Reviewer } from './review.ts'
import { tombstoneMark, type StoredRecord } from './store.ts'

export interface Live {
  readonly session: Session
  /** Its key in the store. */
  readonly key: string
  /**
   * Its end unless it is used; may lie beyond its absolute end. Use is announced to nobody, so that
   * it may be later than this process knows.
   */
  readonly idleEnd: number
}

export type Evaluation = { readonly live: Live } | { readonly ended: EndReason }

export interface CachedSession {
  readonly sealed: string
  /** As it may be served. */
  readonly live: Live
  /** As the store has it. */
  readonly stored: Session
  readonly epoch: number
  readonly review: Review
}

/** The cached result of parsing a record: the session, or its end. */
export type CachedRecord = CachedSession | { readonly ended: EndReason }

/** The record of a session that lives at least to an idle end. */
export function withIdleEnd(record: CachedRecord, idleEnd: number): CachedRecord {
  if (!('live' in record) || record.live.idleEnd >= idleEnd) return record
  return { ...record, live: { ...record.live, idleEnd } }
}

/** The store keeps the reason of an end for so long, for the answer to late requests. */
export const tombstoneMs: Duration = 10 * 60_000

export function createEvaluator(
  format: RecordFormat,
  now: () => number,
  { review }: Pick<Reviewer, 'review'>
) {
  function parse(key: string, { record, ttlMs }: StoredRecord): CachedRecord {
    if (record.startsWith(tombstoneMark)) return { ended: endReasonOf(record.slice(1)) }
    const opened = format.open(key, record)
    if (opened === undefined) return { ended: 'unknown' }
    const { session: stored, epoch } = opened
    const reviewed = review(stored)
    const session = typeof reviewed === 'object' ? reviewed.narrowed : stored
    // The time to live shows when the session was last used: each use resets it.
    return {
      sealed: record,
      live: { session, key, idleEnd: now() + ttlMs - tombstoneMs },
      stored,
      epoch,
      review: reviewed
    }
  }

  /** @param epoch the present epoch */
  function evaluate(record: CachedRecord | undefined, epoch: number): Evaluation {
    if (record === undefined) return { ended: 'unknown' }
    if ('ended' in record) return record
    const time = now()
    const { live } = record
    if (record.epoch < epoch) return { ended: 'revoked' }
    // The session is ahead of the known epoch: only the store can decide.
    if (record.epoch > epoch) return { ended: 'unknown' }
    if (time >= live.session.absoluteEnd) return { ended: 'absolute' }
    if (time >= live.idleEnd) return { ended: 'idle' }
    if (record.review === 'refused') return { ended: 'revoked' }
    return record
  }

  return { parse, evaluate }
}
