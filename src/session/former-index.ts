/** Index entries under bare ids, as versions before identity keys write and read them. */
import type { Duration } from '../config/schema/primitives.ts'
import type { RecordVersion } from './record-format.ts'

export interface FormerIndex {
  /** Whether replicas of such a version may need entries of sessions that this process opens. */
  readonly areWritten: boolean
  /** Whether a live session may have only an entry of such a version. */
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
 * `session.records: 1` means that such versions may run or return; more that they open no more
 * sessions, so that their last one ends one life-time after this process began. Not kept in the
 * store: if it lost the time, sessions would be hidden from those who want to close them.
 */
export function createFormerIndex({
  records,
  longestMs,
  ticks = () => performance.now()
}: Options): FormerIndex {
  const startedAt = ticks()
  return {
    areWritten: records === 1,
    areRead: () => records === 1 || ticks() - startedAt < longestMs
  }
}

export const alwaysFormerIndex: FormerIndex = {
  areWritten: true,
  areRead: () => true
}
