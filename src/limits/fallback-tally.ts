/** Counting that goes on in this process while the shared counters are away, so that no limit falls away with them. */
import type { Entry, Rule, Tally } from './rules.ts'

const pauseAfterFailureMs = 1000

interface Options {
  readonly shared: Tally
  readonly local: Tally
  /** How many processes share the counters, for rules that do not say it. */
  readonly replicas?: () => number
  /** Told when counting turns local, and when it is shared again. */
  readonly onAway: (away: boolean) => void
  readonly now?: () => number
}

/** After a failure the shared counters are left alone for a second: hanging ones must not cost each request their time-out. */
export function withLocal ({ shared, local, replicas = () => 1, onAway, now = () => performance.now() }: Options): Tally {
  let pausedUntil = -Infinity
  let isAway = false
  const parts = new WeakMap<Rule, { readonly count: number, readonly part: Rule }>()
  // Each process lets pass its part then.
  const part = (rule: Rule): Rule => {
    const count = rule.replicas ?? replicas()
    if (count === 1) return rule
    const found = parts.get(rule)
    if (found?.count === count) return found.part
    const share = (whole: number) => Math.max(1, Math.floor(whole / count))
    const made = { ...rule, max: share(rule.max), burst: share(rule.burst) }
    parts.set(rule, { count, part: made })
    return made
  }
  const turn = (away: boolean) => {
    if (away !== isAway) onAway(away)
    isAway = away
  }
  const here = async (entries: readonly Entry[], wants: boolean) => await local.take(entries.map(({ rule, key, owed }) => ({ rule: part(rule), key, owed })), wants)
  return {
    take: async (entries, wants) => {
      if (now() < pausedUntil) return await here(entries, wants)
      try {
        const verdicts = await shared.take(entries, wants)
        turn(false)
        return verdicts
      } catch {
        pausedUntil = now() + pauseAfterFailureMs
        turn(true)
        return await here(entries, wants)
      }
    }
  }
}
