/** The result of a replay: refused callers, times and limits. */
import type { LimitsConfig } from '../../config/schema/limits.ts'
import { ownMember } from '../../config/schema/visit.ts'
import { accountKey } from '../lockout/account.ts'
import type { ReplayOutcome, PastRequest } from './replay.ts'

interface Hit {
  refused: number
  first: number
  last: number
}

interface Counted {
  requests: number
  refused: number
  byLimit: Record<string, number>
}

export interface LimitReport {
  readonly limit: string
  readonly mode: 'enforce' | 'shadow' | 'off'
  /** Requests that it holds for. */
  readonly requests: number
  /** Requests that it refuses, or in shadow would refuse. */
  readonly refused: number
  readonly callers: number
  readonly first: string | undefined
  readonly last: string | undefined
  /**
   * The lowest number with which it would have refused nobody, were it alone; undefined where it
   * held for nothing.
   */
  readonly lowest: number | undefined
}

export interface CallerReport {
  readonly limit: string
  readonly whom: string
  readonly refused: number
  readonly first: string
  readonly last: string
}

/** The requests of a stretch of time. */
export interface Column {
  readonly at: number
  readonly requests: number
  readonly refused: number
  /** By the limit's name; those in shadow too. */
  readonly byLimit: Readonly<Record<string, number>>
}

export interface ReplayReport {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly requests: number
  readonly refused: number
  readonly limits: readonly LimitReport[]
  /** Those with the most refusals first. */
  readonly callers: readonly CallerReport[]
  readonly columnMs: number
  readonly columns: readonly Column[]
}

const maxCallers = 100_000
/** A day is as many of five minutes. */
const maxColumns = 288
/** Each a multiple of the one before; then each twice it. */
const columnSeconds = [1, 5, 15, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400]

export interface ReplayReporter {
  readonly add: (request: PastRequest, outcome: ReplayOutcome) => void
  /** @param lowest of each limit, as the replay has it */
  readonly report: (lowest: ReadonlyMap<string, number>) => ReplayReport
}

export function createReplayReport(config: Pick<LimitsConfig, 'limits'>): ReplayReporter {
  return new Reporter(config)
}

class Reporter implements ReplayReporter {
  readonly #byLimit: Map<string, LimitCounts>
  readonly #columns = new Columns()
  #requests = 0
  #refused = 0
  #first = 0
  #last = 0

  constructor({ limits }: Pick<LimitsConfig, 'limits'>) {
    this.#byLimit = new Map(
      Object.entries(limits).map(([name, { mode, by }]) => {
        return [name, emptyCounts(mode, by)]
      })
    )
  }

  add(request: PastRequest, { held, over, refused }: ReplayOutcome): void {
    if (this.#requests === 0) this.#first = this.#last = request.at
    // A request that comes late counts at the time of the one before.
    const at = (this.#last = Math.max(this.#last, request.at))
    const column = this.#columns.at(at - this.#first)
    this.#requests++
    column.requests++
    if (refused) {
      this.#refused++
      column.refused++
    }
    for (const limit of held) this.#countsOf(limit).requests++
    for (const { limit } of over) {
      column.byLimit[limit] = (ownMember(column.byLimit, limit) ?? 0) + 1
      noteOver(this.#countsOf(limit), request, at)
    }
  }

  /** Ended sessions are not in `limits`: they get a row when there are any. */
  #countsOf(limit: string): LimitCounts {
    let counts = this.#byLimit.get(limit)
    if (counts === undefined) {
      this.#byLimit.set(limit, (counts = emptyCounts('enforce', ['session'])))
    }
    return counts
  }

  report(lowest: ReadonlyMap<string, number>): ReplayReport {
    const { widthMs, columns } = this.#columns
    return {
      from: isoIfAny(this.#requests, this.#first),
      to: isoIfAny(this.#requests, this.#last),
      requests: this.#requests,
      refused: this.#refused,
      limits: Array.from(this.#byLimit, ([limit, counts]) =>
        limitReport(limit, counts, lowest.get(limit))
      ),
      callers: Array.from(this.#byLimit, ([limit, { callers }]) => callerReports(limit, callers))
        .flat()
        .toSorted((a, b) => b.refused - a.refused),
      columnMs: widthMs,
      columns: columns.map((column, index) => ({ at: this.#first + index * widthMs, ...column }))
    }
  }
}

/** Requests over time, in columns of equal width; they get wider where there would be too many. */
class Columns {
  widthMs = 1000
  columns: Counted[] = []

  /** @param sinceFirst milliseconds since the first request */
  at(sinceFirst: number): Counted {
    while (Math.floor(sinceFirst / this.widthMs) >= maxColumns) this.#widen()
    const place = Math.floor(sinceFirst / this.widthMs)
    while (this.columns.length <= place) this.columns.push({ requests: 0, refused: 0, byLimit: {} })
    return this.columns[place] as Counted
  }

  #widen(): void {
    const next = columnSeconds.find(seconds => seconds * 1000 > this.widthMs)
    const widthMs = next === undefined ? 2 * this.widthMs : next * 1000
    const many = widthMs / this.widthMs
    this.widthMs = widthMs
    this.columns = Array.from({ length: Math.ceil(this.columns.length / many) }, (_, index) =>
      this.columns.slice(many * index, many * (index + 1)).reduce(joined)
    )
  }
}

function noteOver({ by, total, callers }: LimitCounts, request: PastRequest, at: number): void {
  noteHit(total, at)
  const caller = callerOf(by, request)
  const hit = callers.get(caller)
  if (hit !== undefined) noteHit(hit, at)
  else if (callers.size < maxCallers) callers.set(caller, { refused: 1, first: at, last: at })
}

function limitReport(
  limit: string,
  { mode, requests, total, callers }: LimitCounts,
  lowest: number | undefined
): LimitReport {
  return {
    limit,
    mode,
    requests,
    refused: total.refused,
    callers: callers.size,
    first: isoIfAny(total.refused, total.first),
    last: isoIfAny(total.refused, total.last),
    lowest
  }
}

function callerReports(limit: string, callers: ReadonlyMap<string, Hit>): CallerReport[] {
  return Array.from(callers, ([whom, { refused, first, last }]) => ({
    limit,
    whom,
    refused,
    first: iso(first),
    last: iso(last)
  }))
}

interface LimitCounts {
  readonly mode: LimitReport['mode']
  readonly by: readonly string[]
  requests: number
  readonly total: Hit
  readonly callers: Map<string, Hit>
}

function emptyCounts(mode: LimitReport['mode'], by: readonly string[]): LimitCounts {
  return {
    mode,
    by,
    requests: 0,
    total: { refused: 0, first: 0, last: 0 },
    callers: new Map()
  }
}

function iso(at: number) {
  return new Date(at).toISOString()
}
function isoIfAny(count: number, at: number) {
  return count === 0 ? undefined : iso(at)
}

function noteHit(hit: Hit, at: number): void {
  if (hit.refused++ === 0) hit.first = at
  hit.last = at
}

function joined(a: Counted, b: Counted): Counted {
  const byLimit = { ...a.byLimit }
  for (const [limit, count] of Object.entries(b.byLimit)) {
    byLimit[limit] = (ownMember(byLimit, limit) ?? 0) + count
  }
  return { requests: a.requests + b.requests, refused: a.refused + b.refused, byLimit }
}

/** The caller that a limit counts in a request, for people. */
function callerOf(by: readonly string[], request: PastRequest): string {
  const { address, caller, ended, signIn } = request
  if (ended !== undefined) return `session ${ended}`
  const words = []
  if (by.includes('user') || by.includes('session')) words.push(`user ${caller?.identity.id ?? ''}`)
  if (by.includes('session')) words.push(`session ${caller?.id ?? ''}`)
  if (by.includes('account')) words.push(`account ${accountKey(signIn?.account ?? '')}`)
  if (by.includes('address')) words.push(`address ${address}`)
  return words.join(', ')
}
