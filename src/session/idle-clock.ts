/**
 * The idle clock of sessions: set anew by use, in the store at most once a minute. Replicas are not
 * told of the use of sessions, so they ask the store before they tell of less time than a session
 * may have.
 */
import type { Duration } from '../config/schema/primitives.ts'
import { type Evaluation, type Live, tombstoneMs } from './evaluate.ts'
import { recentlyUsed } from '../bounded-map.ts'
import type { StoredSession } from './lookup.ts'
import type { Session } from './record.ts'
import type { SessionStore } from './store.ts'

interface Options {
  readonly store: SessionStore
  /** Without sessions that somebody has changed since: their end is read anew. */
  readonly touchedAt: ReturnType<typeof createTouches>
  readonly drop: (key: string) => void
  /** The record as the store has it now, and what that says. */
  readonly read: (key: string) => Promise<StoredSession>
  /** Called for a session whose clock this process has set: nobody announces it. */
  readonly onSet: (key: string, idleEnd: number) => void
  readonly now: () => number
  readonly ticks: () => number
  /** Called when the store could not be written; the request goes on. */
  readonly onFailed: (error: unknown) => void
}

const touchAtMostEveryMs: Duration = 60_000
const retryMs: Duration = 1000
const maxTouches = 50_000

/** Use within this time of a write is not written again. */
export function touchEveryMs({ idleMs }: Pick<Session, 'idleMs'>): number {
  return Math.min(touchAtMostEveryMs, idleMs / 4)
}

/**
 * The times this process last touched sessions. Apart from the cache, since each touch drops the
 * cache's entry.
 */
export function createTouches() {
  return recentlyUsed<number>(maxTouches)
}

export function createIdleClock(options: Options) {
  const { store, touchedAt, drop, read, onSet, now, ticks, onFailed } = options
  const touch = async ({ session, key }: Live): Promise<boolean> =>
    await store.touch(key, session.idleMs + tombstoneMs, tombstoneMs)

  /**
   * Records that a session is used: restarts its idle clock, with at most one write a minute. The
   * idle clock runs on beyond the absolute end, which is evaluated apart: a session used up to its
   * absolute end must not count as idle before.
   * @returns its end unless it is used again
   */
  function use(live: Live): number {
    const { session, key, idleEnd } = live
    const full = now() + session.idleMs
    const every = touchEveryMs(session)
    const isWritten = ticks() - (touchedAt.get(key) ?? -Infinity) < every
    if (full - idleEnd < every || isWritten) return idleEnd
    touchedAt.set(key, ticks())
    touch(live).then(
      isTouched => {
        if (isTouched) onSet(key, full)
      },
      (error: unknown) => {
        // Later uses have to be written, but a Redis that takes no writes is not asked with each.
        touchedAt.set(key, ticks() - every + Math.min(every, retryMs))
        onFailed(error)
      }
    )
    return full
  }

  /** Whether another replica may have prolonged the session by more than `use` leaves unwritten. */
  function mayBeLater({ session, idleEnd }: Live): boolean {
    return now() + session.idleMs - idleEnd >= touchEveryMs(session)
  }

  /**
   * Restarts the idle clock now.
   * @returns the session with its new end, or why it is none any more
   * @throws StoreUnavailable
   */
  async function extend(live: Live): Promise<Evaluation> {
    const { session, key } = live
    const isTouched = await touch(live)
    const idleEnd = now() + session.idleMs
    drop(key)
    if (isTouched) touchedAt.set(key, ticks())
    // It may have ended since it was looked up. The end of everyone's sessions leaves the record,
    // which is touched as any other.
    const { evaluation } = await read(key)
    if (!isTouched || !('live' in evaluation)) return evaluation
    return { live: { ...evaluation.live, idleEnd } }
  }

  return { use, extend, mayBeLater }
}
