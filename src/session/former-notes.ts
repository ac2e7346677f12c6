/** Notes of sessions under bare ids, as versions before identity keys write and read them. */
import type { Duration } from '../config/schema/primitives.ts'
import type { RecordVersion } from './record-format.ts'

export interface FormerNotes {
  /** Whether replicas of such a version may look for what this process opens. */
  readonly areWritten: boolean
  /** Whether a session may be alive that only such a version noted. */
  readonly areRead: () => boolean
}

interface Options {
  readonly records: RecordVersion
  /** The longest absolute life-time of sessions. */
  readonly longestMs: Duration
  /** Monotonic. */
  readonly ticks?: () => number
}

/**
 * `session.records: 1` says that such versions may run, or come back; 2 that they open no sessions
 * any more, so that the last of theirs is over one life-time after this process began. The store
 * keeps nothing of it: what it forgot would hide sessions from those who mean to close them.
 */
export function createFormerNotes({
  records,
  longestMs,
  ticks = () => performance.now()
}: Options): FormerNotes {
  const startedAt = ticks()
  return {
    areWritten: records === 1,
    areRead: () => records === 1 || ticks() - startedAt < longestMs
  }
}

export const alwaysFormerNotes: FormerNotes = {
  areWritten: true,
  areRead: () => true
}
