/** Puts requests back into the order in which they came: a log has them as they ended. */
import type { PastRequest } from './replay.ts'

/** One that lasted longer than this comes late. */
const horizonMs = 60_000

export interface ReorderBuffer {
  readonly add: (request: PastRequest) => void
  /** Those that no other can come before any more; all that are left at the end of the log. */
  readonly due: (atEnd?: boolean) => readonly PastRequest[]
  /** How many came after a later one had been given out. */
  readonly late: () => number
}

export function createReorderBuffer(): ReorderBuffer {
  let waiting: PastRequest[] = []
  let newest = -Infinity
  let oldest = Infinity
  let given = -Infinity
  let late = 0
  return {
    add: request => {
      waiting.push(request)
      if (request.endedAt > newest) newest = request.endedAt
      if (request.at < oldest) oldest = request.at
    },
    due: (atEnd = false) => {
      // Sorting each time would be all that is done.
      if (!atEnd && newest - oldest < 2 * horizonMs) return []
      waiting.sort((a, b) => a.at - b.at)
      const until = atEnd ? Infinity : newest - horizonMs
      const found = waiting.findIndex(({ at }) => at > until)
      const due = found === -1 ? waiting : waiting.slice(0, found)
      waiting = found === -1 ? [] : waiting.slice(found)
      oldest = waiting[0]?.at ?? Infinity
      for (const { at } of due) {
        if (at < given) late++
        else given = at
      }
      return due
    },
    late: () => late
  }
}
