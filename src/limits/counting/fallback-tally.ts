/** Counting that goes on in this process while the shared counters are away, so that no limit falls away with them. */
import { createSwitch } from './with-fallback.ts'
import type { Entry, Rule, Tally } from './rules.ts'

interface Options {
  readonly shared: Tally
  readonly local: Tally
  /** How many processes share the counters, for rules that do not say it. */
  readonly replicas?: () => number
  /** Told when counting turns local, and when it is shared again. */
  readonly onAway: (away: boolean) => void
  readonly now?: () => number
}

/** What Redis had counted is not known then: in a window passes what it allowed, what the processes allow without it, and from a Redis that came back empty what it allows anew; never more. */
export function withLocal({ shared, local, replicas = () => 1, onAway, now }: Options): Tally {
  const choose = createSwitch(onAway, now)
  const parts = new WeakMap<Rule, { readonly count: number; readonly part: Rule }>()
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
  const here = async (entries: readonly Entry[], wants: boolean) =>
    await local.take(
      entries.map(({ rule, key, owed }) => ({ rule: part(rule), key, owed })),
      wants
    )
  return {
    take: (entries, wants) =>
      choose(
        () => shared.take(entries, wants),
        () => here(entries, wants)
      )
  }
}
