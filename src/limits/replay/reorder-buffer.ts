/** Sorts a log's requests by their start: a log has them in the order in which they ended. */
import type { PastRequest } from './replay.ts'

/** A request that lasted longer is late. */
const horizonMs = 60_000

export interface ReorderBuffer {
  readonly add: (request: PastRequest) => void
  /** Requests that no other can precede any more; all remaining ones at the end of the log. */
  readonly due: (atEnd?: boolean) => readonly PastRequest[]
  /** The number of requests that came after a later one was returned. */
  readonly late: () => number
}

export function createReorderBuffer(): ReorderBuffer {
  let waiting: PastRequest[] = []
  let newest = -Infinity
  let oldest = Infinity
  let lastDueAt = -Infinity
  let late = 0
  return {
    add: request => {
      waiting.push(request)
      if (request.endedAt > newest) newest = request.endedAt
      if (request.at < oldest) oldest = request.at
    },
    due: (atEnd = false) => {
      // Sorting on each call would take most of the time.
      if (!atEnd && newest - oldest < 2 * horizonMs) return []
      waiting.sort((a, b) => a.at - b.at)
      const until = atEnd ? Infinity : newest - horizonMs
      const firstWaiting = waiting.findIndex(({ at }) => at > until)
      const due = firstWaiting === -1 ? waiting : waiting.slice(0, firstWaiting)
      waiting = firstWaiting === -1 ? [] : waiting.slice(firstWaiting)
      oldest = waiting[0]?.at ?? Infinity
      for (const { at } of due) {
        if (at < lastDueAt) late++
        else lastDueAt = at
      }
      return due
    },
    late: () => late
  }
}
