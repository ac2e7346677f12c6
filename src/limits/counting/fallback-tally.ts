/**
 * A tally that goes on in this process while Redis is away, so that no limit falls away with it.
 */
import {
  createFallback,
  type FallbackOptions,
  ForeignKeyError,
  pauseAfterFailureMs
} from './with-fallback.ts'
import { replicasOf, type Rule, type Tally, type TallyEntry, type Verdict } from './rules.ts'

interface Options extends FallbackOptions {
  readonly shared: Tally
  readonly local: Tally
  /** The number of processes that share the counters, for rules that do not give it. */
  readonly replicas?: () => number
}

/**
 * Redis' counts are unknown while it is away. So a window passes at most: what Redis allowed, what
 * all processes together allow without it, and what a Redis that came back empty allows anew.
 */
export function tallyWithFallback({
  shared,
  local,
  replicas = () => 1,
  ...options
}: Options): Tally {
  const fallback = createFallback(options)
  const partOf = createPartOf(replicas)
  const parts = (entries: readonly TallyEntry[]) =>
    entries.map(({ rule, key, unreported }) => ({ rule: partOf(rule), key, unreported }))

  /** Only what Redis cannot count, since its key has something else, is counted here. */
  async function ask(
    kind: keyof Tally,
    entries: readonly TallyEntry[]
  ): Promise<readonly Verdict[]> {
    const verdicts = await shared[kind](entries)
    const foreignKeys = verdicts.flatMap(({ foreignKey = [] }) => foreignKey)
    if (foreignKeys.length === 0) return verdicts
    options.onForeignKey?.(new ForeignKeyError(foreignKeys))
    const isForeign = (index: number) => verdicts[index]?.foreignKey !== undefined
    const counted = await local[kind](parts(entries.filter((_, index) => isForeign(index))))
    const localVerdicts = counted.values()
    return verdicts.map((verdict, index) => {
      return isForeign(index) ? (localVerdicts.next().value ?? verdict) : verdict
    })
  }

  return {
    consume: entries =>
      fallback.run(
        () => ask('consume', entries),
        async () => untilAskedAgain(await local.consume(parts(entries)))
      ),
    report: entries =>
      fallback.run(
        () => ask('report', entries),
        async () => untilAskedAgain(await local.report(parts(entries)))
      )
  }
}

/** Redis may have room, so a refusal without it lasts no longer than Redis is left alone. */
function untilAskedAgain(verdicts: readonly Verdict[]): Verdict[] {
  return verdicts.map(verdict => ({
    ...verdict,
    retryMs: Math.min(verdict.retryMs, pauseAfterFailureMs),
    refusesMs: verdict.retryMs
  }))
}

/** Gives each process its part of a rule; cached by rule and number of processes. */
function createPartOf(replicas: () => number): (rule: Rule) => Rule {
  const parts = new WeakMap<Rule, { readonly count: number; readonly part: Rule }>()
  return rule => {
    const count = replicasOf(rule, replicas)
    if (count === 1) return rule
    const cached = parts.get(rule)
    if (cached?.count === count) return cached.part
    const share = (whole: number) => Math.max(1, Math.floor(whole / count))
    const part = { ...rule, max: share(rule.max), burst: share(rule.burst) }
    parts.set(rule, { count, part })
    return part
  }
}
