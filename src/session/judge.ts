/** What a store's record says of a session: alive, or why not. */
import type { Duration } from '../config/primitives.ts'
import { type EndReason, parseRecord, type Session } from './record.ts'
import type { Seal } from './seal.ts'
import { epitaphMark, type Found } from './store.ts'

export interface Live {
  readonly session: Session
  /** The store's name for it. */
  readonly key: string
  /** When it ends unless it is used. */
  readonly idleEnd: number
}

export type Resolved = { readonly live: Live } | { readonly ended: EndReason }

/** What is remembered of a record: the session, or why it ended. */
export type Known = { readonly sealed: string, readonly live: Live, readonly epoch: number } | { readonly ended: EndReason }

/** How long the reason of an end is remembered, so that a late request can be told. */
export const epitaphMs: Duration = 10 * 60_000

export function createJudge (seal: Seal, now: () => number) {
  function parse (key: string, { record, ttlMs }: Found): Known {
    if (record.startsWith(epitaphMark)) return { ended: record.slice(1) as EndReason }
    const opened = seal.open(key, record)
    const parsed = opened === undefined ? undefined : parseRecord(opened)
    // The store's own clock tells how long ago the session was used: each use sets the time left anew.
    return parsed === undefined ? { ended: 'unknown' } : { sealed: record, live: { session: parsed.session, key, idleEnd: now() + ttlMs - epitaphMs }, epoch: parsed.epoch }
  }

  /** @param epoch how often everyone's sessions have been ended */
  function judge (known: Known | undefined, epoch: number): Resolved {
    if (known === undefined) return { ended: 'unknown' }
    if ('ended' in known) return known
    const time = now()
    const { live } = known
    if (known.epoch < epoch) return { ended: 'revoked' }
    if (time >= live.session.absoluteEnd) return { ended: 'absolute' }
    if (time >= live.idleEnd) return { ended: 'idle' }
    return known
  }

  return { parse, judge }
}
