/** Counts requests in this process. */
import { BoundedMap } from '../../bounded-map.ts'
import { steadyNow } from '../../steady-clock.ts'
import type { CallerCounts } from './callers.ts'
import { decide, type State, type States, type Tally, type TallyEntry } from './rules.ts'
import { forgetSubject } from './forget-subject.ts'

const maxKeys = 100_000

/** Bounded: keys are attacker-controlled, so the oldest gives way. */
export function createMemoryTally(now: () => number = steadyNow): Tally & CallerCounts {
  const kept = new BoundedMap<{ state: State; endsAt: number }>(maxKeys)
  const states: States = {
    get: key => kept.peek(key)?.state,
    set: (key, state, ttlMs) => void kept.set(key, { state, endsAt: now() + ttlMs })
  }
  let swept = now()
  async function take(entries: readonly TallyEntry[], consumes: boolean) {
    const time = now()
    if (time - swept > 60_000) {
      swept = time
      for (const [key, { endsAt }] of [...kept]) if (endsAt <= time) kept.delete(key)
    }
    return decide(entries, consumes, states, time)
  }
  return {
    consume: entries => take(entries, true),
    report: entries => take(entries, false),
    keysOf: async subject => [...kept.keys()].filter(key => key.startsWith(subject)).toSorted(),
    forget: async subject => forgetSubject(kept, subject)
  }
}
