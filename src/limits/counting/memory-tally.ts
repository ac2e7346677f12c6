/** Counts requests in this process. */
import type { CallerCounts } from './callers.ts'
import { decide, type State, type States, type Tally } from './rules.ts'

const maxKeys = 100_000

/** Bounded: the oldest key gives way, since clients choose the keys. */
export function createMemoryTally(now: () => number = Date.now): Tally & CallerCounts {
  const kept = new Map<string, { state: State; endsAt: number }>()
  const states: States = {
    get: key => kept.get(key)?.state,
    set: (key, state, ttlMs) => {
      kept.delete(key)
      if (kept.size >= maxKeys) kept.delete(kept.keys().next().value ?? '')
      kept.set(key, { state, endsAt: now() + ttlMs })
    }
  }
  let swept = now()
  return {
    take: async (entries, wants) => {
      const time = now()
      if (time - swept > 60_000) {
        swept = time
        for (const [key, { endsAt }] of kept) if (endsAt <= time) kept.delete(key)
      }
      return decide(entries, wants, states, time)
    },
    keysOf: async subject => [...kept.keys()].filter(key => key.startsWith(subject)).toSorted(),
    forget: async subject => {
      for (const key of kept.keys()) if (key.startsWith(subject)) kept.delete(key)
    }
  }
}
