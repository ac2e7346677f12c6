/** Suggests limits' numbers from the usage record. */
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { isOfSignIn } from '../counting/plan.ts'
import type { ProcessHour, RecordedUsage } from './redis-usage.ts'
import { type Caller, callersOf, whomOf } from './whom.ts'
import { greatestOf, hourMs, type LimitUsage, maxTop, type Top } from './hours.ts'
import { usageNotes } from './notes.ts'

export interface Suggestion {
  readonly limit: string
  readonly mode: LimitConfig['mode']
  readonly by: readonly string[]
  /** The key that the numbers are about. */
  readonly key: 'max' | 'burst'
  readonly inForce: number
  readonly requests: number
  /** Requests that it refused, or in shadow would have refused. */
  readonly refused: number
  /** Quantiles of callers' greatest need in an hour, over all callers and hours. */
  readonly p50: number
  readonly p99: number
  readonly highest: number
  /** The lowest number that refuses nobody: exact for one process, between the two for several. */
  readonly lowest: { readonly from: number; readonly to: number } | undefined
  /**
   * Callers that need more than is in force, the greatest first; `more` where further ones are
   * unknown by name.
   */
  readonly over: ReadonlyArray<{
    readonly whom: string
    readonly needed: { readonly from: number; readonly to: number }
    readonly at: string
    readonly refused: number
  }>
  readonly more: boolean
  readonly notes: readonly string[]
}

export interface Suggestions {
  readonly from: string
  readonly to: string
  /** The part of that time that the record covers. */
  readonly coveredMs: number
  readonly askedMs: number
  readonly processes: number
  /** The number of processes that count together now: a new one has written nothing yet. */
  readonly counting: number
  /** Redis was unavailable: records of other processes are missing. */
  readonly alone: boolean
  readonly limits: readonly Suggestion[]
}

export type Seen = LimitUsage & {
  readonly process: string
  readonly hour: number
  readonly processes: number
}

export function suggest(
  { limits }: Pick<LimitsConfig, 'limits'>,
  { hours, alone }: RecordedUsage,
  askedMs: number,
  now: number
): Suggestions {
  const spans = [...Map.groupBy(hours, ({ use }) => use.hour).values()].map(
    here =>
      [
        Math.min(...here.map(({ use }) => use.from)),
        Math.max(...here.map(({ use }) => use.until))
      ] as const
  )
  const latest = Math.max(...hours.map(({ use }) => use.until))
  return {
    from: new Date(Math.min(now, ...spans.map(([from]) => from))).toISOString(),
    to: new Date(now).toISOString(),
    coveredMs: spans.reduce((sum, [from, until]) => sum + until - from, 0),
    askedMs,
    processes: new Set(hours.map(({ process }) => process)).size,
    counting: Math.max(
      1,
      ...hours.filter(({ use }) => use.until === latest).map(({ use }) => use.processes)
    ),
    alone,
    limits: Object.entries(limits).map(([name, limit]) => ofLimit(name, limit, hours))
  }
}

function usageKindOf(limit: LimitConfig) {
  if (isOfSignIn(limit)) return 'attempts'
  return limit.burst === undefined ? limit.kind : 'bucket'
}

/** The recorded use of one limit as it is in force. */
export interface RecordedLimit {
  readonly kind: LimitUsage['kind']
  /** The key that the numbers are about, and its value in force. */
  readonly key: 'max' | 'burst'
  readonly inForce: number
  readonly seen: readonly Seen[]
  readonly needs: Needs
  /** Whether there are records of another window or kind too. */
  readonly isPartial: boolean
  readonly callerOf: (key: string) => Caller
}

export function recordedLimit(
  name: string,
  limit: LimitConfig,
  hours: readonly ProcessHour[]
): RecordedLimit {
  const { by, max, burst, window } = limit
  const kind = usageKindOf(limit)
  const all = hours.flatMap(({ process, use }) =>
    use.limits
      .filter(each => each.limit === name)
      .map((each): Seen => ({ ...each, process, hour: use.hour, processes: use.processes }))
  )
  const seen = all.filter(
    each =>
      each.kind === kind && each.windowMs === window && each.per === (kind === 'bucket' ? max : 0)
  )
  return {
    kind,
    key: kind === 'bucket' ? 'burst' : 'max',
    inForce: burst ?? max,
    seen,
    needs: needed(seen, kind, window),
    isPartial: all.length > seen.length,
    callerOf: callersOf(name, kind, by)
  }
}

function ofLimit(name: string, limit: LimitConfig, hours: readonly ProcessHour[]): Suggestion {
  const { mode, by, max } = limit
  const { kind, key, inForce, seen, needs, isPartial, callerOf } = recordedLimit(name, limit, hours)
  const atLeast = Math.max(0, ...seen.map(({ top: [first] }) => first?.[1] ?? 0))
  const callers = seen.flatMap(each => each.callers)
  // Each of several processes may have seen few, though all together refused.
  const over = needs.callers.filter(
    ({ needed: { from, to }, refused }) => from > inForce || (to > inForce && refused > 0)
  )
  const notes = [
    ...(isPartial ? [usageNotes.partial] : []),
    ...(seen.some(({ cut }) => cut) ? [usageNotes.cut] : []),
    ...(kind === 'bucket' && needs.grew ? [usageNotes.grew] : []),
    ...(kind === 'bucket' && Math.max(atLeast, needs.to) > max ? [usageNotes.burst] : [])
  ]
  return {
    limit: name,
    mode,
    by,
    key,
    inForce,
    requests: seen.reduce((sum, { requests }) => sum + requests, 0),
    refused: seen.reduce((sum, { refused }) => sum + refused, 0),
    p50: Math.min(atLeast, quantile(callers, 0.5)),
    p99: Math.min(atLeast, quantile(callers, 0.99)),
    highest: atLeast,
    lowest: seen.length === 0 ? undefined : { from: atLeast, to: Math.max(atLeast, needs.to) },
    over: over
      .toSorted((a, b) => b.needed.from - a.needed.from)
      .slice(0, maxTop)
      .map(each => ({
        whom: whomOf(callerOf(each.key)),
        needed: each.needed,
        at: new Date(each.at).toISOString(),
        refused: each.refused
      })),
    more:
      over.length > maxTop ||
      seen.some(({ top }) => top.length >= maxTop && (top[maxTop - 1] as Top)[1] > inForce),
    notes
  }
}

interface Needing {
  readonly key: string
  readonly needed: { readonly from: number; readonly to: number }
  readonly at: number
  readonly refused: number
}

interface Needs {
  /** Enough for all callers, also for those that no list names. */
  readonly to: number
  readonly callers: readonly Needing[]
  readonly grew: boolean
}

/**
 * The needs of callers. One process' numbers are exact. Those of several are summed up over each
 * stretch of hours that one window can touch; a caller that a full list does not name may have
 * needed as much as the last one it names.
 */
function needed(seen: readonly Seen[], kind: LimitUsage['kind'], windowMs: number): Needs {
  // A bucket's backlog refills over several windows, and each process counts its part of it.
  const windows =
    kind === 'bucket'
      ? Math.max(
          1,
          ...seen.map(
            ({ top, per, processes }) =>
              (Math.max(0, ...top.map(([, , upperBound]) => upperBound)) * processes) / per
          )
        )
      : 1
  const back = Math.ceil((windows * windowMs) / hourMs)
  const callers = new Map<string, Needing>()
  let to = 0
  let grew = false
  for (const [hour, here] of Map.groupBy(seen, each => each.hour)) {
    const near = Map.groupBy(
      seen.filter(each => each.hour <= hour && each.hour >= hour - back),
      each => each.process
    )
    const several = near.size > 1 && kind !== 'attempts'
    if (several && here.some(({ processes }) => processes < near.size)) grew = true
    const lists = [...near.values()].map(usages => ({
      tops: joined(usages),
      unnamed: Math.max(0, ...usages.map(unnamedOf))
    }))
    const unnamed = lists.reduce((sum, list) => sum + list.unnamed, 0)
    if (several) to = Math.max(to, unnamed)
    for (const key of new Set(here.flatMap(({ top }) => top.map(([each]) => each)))) {
      const perProcess = lists.map(({ tops, unnamed: rest }) => ({ top: tops.get(key), rest }))
      const named = perProcess.flatMap(({ top }) => (top === undefined ? [] : [top]))
      const isSole =
        !several ||
        (named.length === 1 && perProcess.every(({ top, rest }) => top !== undefined || rest === 0))
      const needs = isSole
        ? Math.max(...named.map(([, peak]) => peak))
        : perProcess.reduce((sum, { top, rest }) => sum + (top?.[2] ?? rest), 0)
      to = Math.max(to, needs)
      const [, peak, , at] = named.reduce((greatest, each) =>
        each[1] > greatest[1] ? each : greatest
      )
      const refused = here.reduce(
        (sum, { top }) => sum + (top.find(([each]) => each === key)?.[4] ?? 0),
        0
      )
      const former = callers.get(key)
      callers.set(key, {
        key,
        needed: {
          from: Math.max(peak, former?.needed.from ?? 0),
          to: Math.max(needs, peak, former?.needed.to ?? 0)
        },
        at: former !== undefined && former.needed.from >= peak ? former.at : at,
        refused: refused + (former?.refused ?? 0)
      })
    }
  }
  return { to, callers: [...callers.values()], grew }
}

/**
 * The most that a caller outside of a full list needed: as much as its last one; twice that for
 * fixed windows, which may start at other times.
 */
function unnamedOf({ kind, top }: Seen): number {
  const last = top.length >= maxTop ? (top.at(-1)?.[1] ?? 0) : 0
  return kind === 'fixed' ? 2 * last : last
}

function joined(usages: readonly Seen[]): Map<string, Top> {
  const tops = new Map<string, Top>()
  for (const top of usages.flatMap(each => each.top)) {
    const former = tops.get(top[0])
    tops.set(
      top[0],
      former === undefined
        ? top
        : [
            top[0],
            Math.max(former[1], top[1]),
            Math.max(former[2], top[2]),
            former[1] >= top[1] ? former[3] : top[3],
            0
          ]
    )
  }
  return tops
}

function quantile(callers: LimitUsage['callers'], part: number): number {
  const sorted = callers.toSorted(([a], [b]) => a - b)
  let left = part * sorted.reduce((sum, [, count]) => sum + count, 0)
  for (const [place, count] of sorted) if ((left -= count) <= 0) return greatestOf(place)
  return 0
}
