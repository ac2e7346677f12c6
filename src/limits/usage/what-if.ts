/** The record of use read against the limits in force, and against another number for one. */
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { disjointSum, type Span } from './disjoint-sum.ts'
import { greatestOf, hourMs, placeOf } from './hours.ts'
import { slices } from '../counting/rules.ts'
import type { RecordedUsage } from './redis-usage.ts'
import {
  type RecordedLimit,
  recordedLimit,
  type Seen,
  suggest,
  type Suggestion
} from './suggest.ts'
import { usageNotes } from './notes.ts'
import { type Caller, whomOf } from './whom.ts'

export interface LimitUse extends Pick<
  Suggestion,
  'limit' | 'mode' | 'by' | 'key' | 'requests' | 'refused' | 'p50' | 'p99' | 'highest' | 'notes'
> {
  /** The number in force: `max`, or `burst` of a limit that has one. */
  readonly max: number
  readonly windowMs: number
  /** Of a limit in shadow: requests that it would have refused. */
  readonly shadowRefused: number
  /** Callers that needed 80 % of the number or more in an hour, the greatest first. */
  readonly near: ReadonlyArray<{
    readonly whom: string
    readonly caller: Caller
    readonly used: number
    readonly at: string
    readonly refused: number
  }>
}

export interface WhatIf {
  readonly limit: string
  readonly key: 'max' | 'burst'
  readonly inForce: number
  readonly number: number
  /** Requests that it would have refused, at least. */
  readonly refused: number
  /** The number of callers: at least those with a name, at most with those known by number. */
  readonly refusedCallers: { readonly from: number; readonly to: number }
  /** Those known by name, the greatest first. */
  readonly callers: ReadonlyArray<{
    readonly whom: string
    readonly caller: Caller
    readonly refused: number
  }>
  /** The lowest number that refuses nobody, as `limits suggest` says; null without a record. */
  readonly lowest: number | null
  /** Less than `lowest` where several processes counted: the truth lies between. */
  readonly lowestFrom: number | null
  readonly notes: readonly string[]
  /** The lines for `limits.yaml`. */
  readonly yaml: string
}

const nearShare = 0.8
const maxNear = 20
const maxCallers = 50

export function limitUse(
  config: Pick<LimitsConfig, 'limits'>,
  recorded: RecordedUsage,
  askedMs: number,
  now: number
): LimitUse[] {
  const { limits } = suggest(config, recorded, askedMs, now)
  return limits.map(({ inForce, lowest: _lowest, over: _over, more: _more, ...suggestion }) => {
    const limit = config.limits[suggestion.limit] as LimitConfig
    const isShadow = limit.mode === 'shadow'
    return {
      ...suggestion,
      max: inForce,
      windowMs: limit.window,
      refused: isShadow ? 0 : suggestion.refused,
      shadowRefused: isShadow ? suggestion.refused : 0,
      near: nearOf(recordedLimit(suggestion.limit, limit, recorded.hours))
    }
  })
}

function nearOf({ needs, inForce, callerOf }: RecordedLimit): LimitUse['near'] {
  return needs.callers
    .filter(({ needed }) => needed.to >= inForce * nearShare)
    .toSorted((a, b) => b.needed.from - a.needed.from)
    .slice(0, maxNear)
    .map(({ key, needed, at, refused }) => ({
      ...named(callerOf(key)),
      used: needed.from,
      at: new Date(at).toISOString(),
      refused
    }))
}

/** In words, and in parts for other languages. */
function named(caller: Caller) {
  return { whom: whomOf(caller), caller }
}

/** @param factor of the number in force, such as 0.8 */
export function whatIf(
  name: string,
  config: Pick<LimitsConfig, 'limits'>,
  { recorded, factor }: { readonly recorded: RecordedUsage; readonly factor: number }
): WhatIf {
  const limit = config.limits[name] as LimitConfig
  const { key, inForce, seen, needs, callerOf } = recordedLimit(name, limit, recorded.hours)
  const number = Math.max(1, Math.round(inForce * factor))
  const only = { limits: { [name]: limit } }
  const { limits } = suggest(only, recorded, 0, Date.now())
  const { lowest, notes = [] } = limits[0] ?? {}
  const unnamed = seen.map(each => ({ each, ...unnamedOver(each, number) }))
  const byCaller = refusedByCaller(seen, number)
  const sure = needs.callers.filter(({ needed }) => needed.from > number).length
  const possible = needs.callers.filter(({ needed }) => needed.to > number).length
  return {
    limit: name,
    key,
    inForce,
    number,
    refused:
      sum([...byCaller.values()]) +
      sumOfProcesses(
        unnamed.map(({ each, requests }) => ({
          of: each.process,
          from: each.hour * hourMs - reachOf(each, leastOf(placeOf(number))),
          until: (each.hour + 1) * hourMs,
          value: requests
        }))
      ),
    refusedCallers: { from: sure, to: possible + sum(unnamed.map(({ callers }) => callers)) },
    callers: [...byCaller]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, maxCallers)
      .map(([caller, refused]) => ({ ...named(callerOf(caller)), refused })),
    lowest: lowest?.to ?? null,
    lowestFrom: lowest?.from ?? null,
    notes: [
      ...(seen.length === 0 ? [usageNotes.none] : [usageNotes.busiest]),
      ...(recorded.alone ? [usageNotes.alone] : []),
      ...notes
    ],
    yaml: yamlOf(name, limit, key, number)
  }
}

/**
 * The least that each caller would have been refused: what is over in its busiest window of each
 * hour, of windows that share no request.
 */
function refusedByCaller(seen: readonly Seen[], number: number): Map<string, number> {
  const spans = seen.flatMap(each =>
    each.top
      .filter(([, peak]) => peak > number)
      .map(([key, peak, , at]) => ({
        key,
        of: `${each.process} ${key}`,
        from: at - reachOf(each, peak),
        until: at,
        value: peak - number
      }))
  )
  return new Map(
    [...Map.groupBy(spans, ({ key }) => key)].map(([key, spansOfKey]) => [
      key,
      sumOfProcesses(spansOfKey)
    ])
  )
}

/** @param spans `of`: those of another caller or process have other requests */
function sumOfProcesses(spans: ReadonlyArray<Span & { readonly of: string }>): number {
  return sum([...Map.groupBy(spans, ({ of }) => of).values()].map(disjointSum))
}

/** The milliseconds before a peak whose requests it may count. */
function reachOf({ kind, windowMs, per }: Seen, peak: number): number {
  if (kind === 'sliding') return windowMs + windowMs / slices
  // A bucket's backlog refills over several windows.
  return kind === 'bucket' ? windowMs * Math.max(1, peak / per) : windowMs
}

/** Callers of one hour that are known by the class of their need only. */
function unnamedOver({ callers, top }: Seen, number: number) {
  const left = new Map(callers)
  for (const [, peak] of top) left.set(placeOf(peak), (left.get(placeOf(peak)) ?? 0) - 1)
  const over = [...left].filter(([place, count]) => count > 0 && leastOf(place) > number)
  return {
    callers: sum(over.map(([, count]) => count)),
    requests: sum(over.map(([place, count]) => count * (leastOf(place) - number)))
  }
}

function leastOf(place: number): number {
  return place === 0 ? 0 : greatestOf(place - 1) + 1
}

/** A burst may not be more than `max`. */
function yamlOf(name: string, { max }: LimitConfig, key: 'max' | 'burst', number: number): string {
  const both = key === 'burst' && number > max ? `    max: ${number}\n` : ''
  return `limits:\n  ${name}:\n${both}    ${key}: ${number}\n`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
