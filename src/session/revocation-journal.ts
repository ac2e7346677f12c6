/** Recent ends of sessions by this process: a new primary may not have received them. */
import { BoundedMap } from '../bounded-map.ts'

export interface Revocation {
  readonly key: string
  readonly tombstone: string
  readonly ttlMs: number
}

export const revocationsKeptMs = 60_000
/**
 * Bounded: one call can close all sessions of a user, and users can sign out as fast as they sign
 * in.
 */
const maxEntries = 50_000

export function createRevocationJournal(now: () => number = () => performance.now()) {
  const entries = new BoundedMap<{ readonly revocation: Revocation; readonly at: number }>(
    maxEntries
  )

  /** Entries stand in the order of their time. */
  function dropOld(): void {
    for (const [key, { at }] of entries.oldestFirst()) {
      if (now() - at < revocationsKeptMs) return
      entries.delete(key)
    }
  }

  return {
    add: (revocation: Revocation): void => {
      entries.set(revocation.key, { revocation, at: now() })
      dropOld()
    },
    recent: (): Revocation[] => {
      dropOld()
      return Array.from(entries.oldestFirst(), ([, { revocation }]) => revocation)
    }
  }
}
