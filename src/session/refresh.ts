/**
 * Refresh calls of consoles. A timer makes them too, so by default one extends a session only if
 * another request has extended it since the last: a forgotten tab goes idle all the same.
 *
 * The time of the last extending refresh is a record beside the session's, which only replicas with
 * this endpoint know. The session's own time to live tells the rest: a refresh sets it a little
 * shorter than use does, so that the next use is always written and later than the refresh.
 */
import { type Evaluation, type Live, tombstoneMs } from './evaluate.ts'
import { touchEveryMs } from './idle-clock.ts'
import type { StoredSession } from './lookup.ts'
import { type RecordStore, StoreUnavailable } from './store.ts'

export type RefreshPolicy = 'after-use' | 'always' | 'never'

interface Options {
  readonly store: Pick<RecordStore, 'create' | 'read' | 'touch'>
  /** The record as the store has it now, and what that says. */
  readonly read: (key: string) => Promise<StoredSession>
  readonly extend: (live: Live) => Promise<number>
  /** Called for a session whose time to live was set. */
  readonly onWritten: (key: string) => void
  readonly now: () => number
}

const markerOf = (key: string) => `${key}.refresh`
const lifeOf = ({ session }: Live) => session.idleMs + tombstoneMs

export function createRefresh({ store, read, extend, onWritten, now }: Options) {
  /**
   * Extends a session as the policy says.
   * @returns the session with its new end, or why it is none any more
   * @throws StoreUnavailable
   */
  async function refresh(live: Live, policy: RefreshPolicy): Promise<Evaluation> {
    if (policy === 'never') return { live }
    if (policy === 'always') return { live: { ...live, idleEnd: await extend(live) } }
    const { key } = live
    const [marker, { evaluation }] = await Promise.all([store.read(markerOf(key)), read(key)])
    if (!('live' in evaluation)) return evaluation
    const current = evaluation.live
    const usedAgoMs = now() + current.session.idleMs - current.idleEnd
    const refreshedAgoMs = marker === undefined ? Infinity : lifeOf(current) - marker.ttlMs
    if (usedAgoMs >= refreshedAgoMs) return evaluation
    // First the marker: if the second write fails, the session ends too early rather than never.
    await mark(current, marker !== undefined)
    return { live: { ...current, idleEnd: await extendByRefresh(current) } }
  }

  async function mark(live: Live, isMarked: boolean): Promise<void> {
    const key = markerOf(live.key)
    const touch = () => store.touch(key, lifeOf(live), 0)
    if (isMarked) return await touch()
    try {
      await store.create(key, '', lifeOf(live))
    } catch (error) {
      // Another tab may have made it at the same moment.
      if (!(error instanceof StoreUnavailable)) throw error
      await touch()
    }
  }

  async function extendByRefresh(live: Live): Promise<number> {
    const { key, session } = live
    // More than the time in which use is not written again, by what clocks of replicas differ.
    const shorterMs = touchEveryMs(session) * 1.02
    await store.touch(key, lifeOf(live) - shorterMs, tombstoneMs)
    onWritten(key)
    return now() + session.idleMs - shorterMs
  }

  return refresh
}
