/**
 * Refresh calls of consoles. A timer makes them too, so by default one extends a session only if
 * another request has extended it since the last: a forgotten tab goes idle all the same.
 */
import { type Evaluation, type Live, tombstoneMs } from './evaluate.ts'
import { touchEveryMs } from './idle-clock.ts'
import type { StoredSession } from './lookup.ts'
import type { RecordStore } from './store.ts'

export type RefreshPolicy = 'after-use' | 'always' | 'never'

interface Options {
  readonly store: Pick<RecordStore, 'touchAfterUse'>
  /** The record as the store has it now, and what that says. */
  readonly read: (key: string) => Promise<StoredSession>
  readonly extend: (live: Live) => Promise<Evaluation>
  /** Called for a session whose idle clock was set. */
  readonly onWritten: (key: string) => void
}

export function createRefresh({ store, read, extend, onWritten }: Options) {
  /**
   * Extends a session as the policy says.
   * @returns the session with its new end, or why it is none any more
   * @throws StoreUnavailable
   */
  return async function refresh(live: Live, policy: RefreshPolicy): Promise<Evaluation> {
    if (policy === 'never') return { live }
    if (policy === 'always') return await extend(live)
    const { key, session } = live
    // Less than use sets, so that the next use is always written and later than the refresh: less
    // by the time in which use is not written again, and by what clocks of replicas differ.
    const shorterMs = touchEveryMs(session) * 1.02
    const ttlMs = session.idleMs + tombstoneMs - shorterMs
    if (await store.touchAfterUse(key, ttlMs, tombstoneMs)) onWritten(key)
    return (await read(key)).evaluation
  }
}
