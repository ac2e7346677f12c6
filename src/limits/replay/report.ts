/** What a replay comes to: who would have been refused, when, and by which limit. */
import type { LimitsConfig } from '../../config/schema/limits.ts'
import { accountKey } from '../lockout/account.ts'
import type { Outcome, PastRequest } from './replay.ts'

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
  /** The lowest number with which it would have refused nobody, were it alone; undefined where it held for nothing. */
  readonly lowest: number | undefined
}

export interface CallerReport {
  readonly limit: string
  readonly whom: string
  readonly refused: number
  readonly first: string
  readonly last: string
}

/** So many requests in a stretch of time. */
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

export function createReplayReport({ limits }: Pick<LimitsConfig, 'limits'>) {
  const ofLimits = new Map(
    Object.entries(limits).map(([name, { mode, by }]) => {
      return [name, emptyCounts(mode, by)]
    })
  )
  let requests = 0
  let refused = 0
  let first = 0
  let last = 0
  let columnMs = 1000
  let columns: Counted[] = []

  /** Ended sessions are no limit of `limits`: their row stands where there are any. */
  function countsOf(limit: string): LimitCounts {
    let counts = ofLimits.get(limit)
    if (counts === undefined) ofLimits.set(limit, (counts = emptyCounts('enforce', ['session'])))
    return counts
  }

  /** The column of a time; columns get wider where there would be too many. */
  function columnAt(at: number) {
    while (Math.floor((at - first) / columnMs) >= maxColumns) {
      const wider =
        (columnSeconds.find(seconds => seconds * 1000 > columnMs) ?? columnMs / 500) * 1000
      const many = wider / columnMs
      columnMs = wider
      columns = Array.from({ length: Math.ceil(columns.length / many) }, (_, index) =>
        columns.slice(many * index, many * (index + 1)).reduce(joined)
      )
    }
    const place = Math.floor((at - first) / columnMs)
    while (columns.length <= place) columns.push({ requests: 0, refused: 0, byLimit: {} })
    return columns[place] as Counted
  }

  function add(request: PastRequest, { held, over, refused: isRefused }: Outcome): void {
    if (requests === 0) first = last = request.at
    // One that comes late counts when it is taken.
    const at = (last = Math.max(last, request.at))
    requests++
    const column = columnAt(at)
    column.requests++
    if (isRefused) {
      refused++
      column.refused++
    }
    for (const limit of held) countsOf(limit).requests++
    for (const { limit } of over) {
      const of = countsOf(limit)
      column.byLimit[limit] = (column.byLimit[limit] ?? 0) + 1
      note(of.total, at)
      const whom = whomOf(of.by, request)
      const known = of.callers.get(whom)
      if (known !== undefined) note(known, at)
      else if (of.callers.size < maxCallers)
        of.callers.set(whom, { refused: 1, first: at, last: at })
    }
  }

  const report = (lowest: ReadonlyMap<string, number>): ReplayReport => ({
    from: told(requests, first),
    to: told(requests, last),
    requests,
    refused,
    limits: Array.from(ofLimits, ([limit, { mode, requests: held, total, callers }]) => ({
      limit,
      mode,
      requests: held,
      refused: total.refused,
      callers: callers.size,
      first: told(total.refused, total.first),
      last: told(total.refused, total.last),
      lowest: lowest.get(limit)
    })),
    callers: Array.from(ofLimits, ([limit, { callers }]) =>
      Array.from(callers, ([whom, hit]) => ({
        limit,
        whom,
        refused: hit.refused,
        first: iso(hit.first),
        last: iso(hit.last)
      }))
    )
      .flat()
      .toSorted((a, b) => b.refused - a.refused),
    columnMs,
    columns: columns.map((column, index) => ({ at: first + index * columnMs, ...column }))
  })

  return { add, report }
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
function told(count: number, at: number) {
  return count === 0 ? undefined : iso(at)
}

function note(hit: Hit, at: number): void {
  if (hit.refused++ === 0) hit.first = at
  hit.last = at
}

function joined(a: Counted, b: Counted): Counted {
  const byLimit = { ...a.byLimit }
  for (const [limit, count] of Object.entries(b.byLimit))
    byLimit[limit] = (byLimit[limit] ?? 0) + count
  return { requests: a.requests + b.requests, refused: a.refused + b.refused, byLimit }
}

/** Whom a limit counts in a request, for people. */
function whomOf(by: readonly string[], request: PastRequest): string {
  const { address, caller, ended, signIn } = request
  if (ended !== undefined) return `session ${ended}`
  const words = []
  if (by.includes('user') || by.includes('session')) words.push(`user ${caller?.identity.id ?? ''}`)
  if (by.includes('session')) words.push(`session ${caller?.id ?? ''}`)
  if (by.includes('account')) words.push(`account ${accountKey(signIn?.account ?? '')}`)
  if (by.includes('address')) words.push(`address ${address}`)
  return words.join(', ')
}
