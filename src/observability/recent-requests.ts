/**
 * The last requests of this process, and those that run, for `console-gateway why` and the
 * operators' API.
 */
import { type RequestRecord, recordOf } from './request-record.ts'
import type { TrailKey } from './trail-bytes.ts'
import { TrailRing } from './trail-ring.ts'
import type { Trail } from './trail.ts'

/** The number of requests that are kept; 0 keeps none. */
export interface RequestBounds {
  readonly keep: number
  /** Failed ones, which others do not push out. */
  readonly keepFailed: number
}

export interface RequestQuery {
  readonly id?: string | undefined
  /** Name or id of a user. */
  readonly user?: string | undefined
  /** `404`, `4xx`, `failed` or `running`. */
  readonly status?: string | undefined
  readonly route?: string | undefined
  /** The newest so many. */
  readonly last?: number | undefined
}

/** The requests that one process still has. */
export interface KeptRequests {
  /** ISO 8601: the process keeps requests since then. */
  readonly since: string
  readonly ok: KeptRange
  readonly failed: KeptRange
}

interface KeptRange {
  readonly kept: number
  readonly overwritten: number
  /** ISO 8601, of the oldest that is kept. */
  readonly oldestAt?: string | undefined
}

export interface FoundRequests {
  /** Newest first. */
  readonly requests: readonly RequestRecord[]
  /** Whether more than `last` matched. */
  readonly hasMore: boolean
  readonly kept: KeptRequests
}

/** More are not given at once. */
export const maxLast = 500
const defaultLast = 50
/** More are kept as they are, without the end of their last call. */
const maxUnsettled = 100

/** The oldest gives way. They are kept as objects: a failed call may end after its response. */
class FailedTrails {
  readonly #size: number
  readonly #trails: Trail[] = []
  #next = 0
  #overwritten = 0

  constructor(size: number) {
    this.#size = size
  }

  add(trail: Trail): void {
    if (this.#trails.length < this.#size) {
      this.#trails.push(trail)
      return
    }
    if (this.#size === 0) return
    this.#trails[this.#next] = trail
    this.#next = this.#next + 1 === this.#size ? 0 : this.#next + 1
    this.#overwritten++
  }

  newest(count: number, matches: (key: TrailKey) => boolean): Trail[] {
    const trails: Trail[] = []
    const { length } = this.#trails
    for (let back = 1; back <= length && trails.length < count; back++) {
      const trail = this.#trails[(this.#next - back + length) % length] as Trail
      if (matches(trail)) trails.push(trail)
    }
    return trails
  }

  get length(): number {
    return this.#trails.length
  }

  get overwritten(): number {
    return this.#overwritten
  }

  get oldest(): Trail | undefined {
    return this.#trails[this.#next] ?? this.#trails[0]
  }
}

function rangeOf({ length, overwritten, oldest }: TrailRing | FailedTrails): KeptRange {
  return { kept: length, overwritten, oldestAt: oldest && new Date(oldest.at).toISOString() }
}

/** A request that has not ended. */
export interface RunningRequest {
  readonly trail: Trail
}

/** Those that run are an array, since each knows its place in it; connections bound it. */
export class RecentRequests<Request extends RunningRequest = RunningRequest> {
  readonly #ok: TrailRing
  readonly #failed: FailedTrails
  readonly #since = new Date().toISOString()
  readonly #running: Request[] = []
  /** Ended requests with a call that still runs, such as a sign-out at a back-end. */
  #unsettled: Trail[] = []
  readonly #maxUnsettled: number
  readonly #complete: (request: Request) => void

  /** @param complete writes into a running request's trail what is known of it by now */
  constructor(
    { keep, keepFailed }: RequestBounds,
    complete: (request: Request) => void = () => {}
  ) {
    this.#ok = new TrailRing(keep)
    this.#maxUnsettled = Math.min(keep, maxUnsettled)
    this.#failed = new FailedTrails(keepFailed)
    this.#complete = complete
  }

  /** To be called once, and `end` after it. */
  begin(request: Request): void {
    request.trail.place = this.#running.length
    this.#running.push(request)
  }

  end(trail: Trail): void {
    const last = this.#running.pop()
    if (last !== undefined && last.trail !== trail) {
      last.trail.place = trail.place
      this.#running[trail.place] = last
    }
    trail.place = -1
    this.add(trail)
  }

  /** @param trail of a request that has ended, and that was never begun here */
  add(trail: Trail): void {
    if (hasFailed(trail)) this.#failed.add(trail)
    else if (hasOpenCall(trail)) this.#addUnsettled(trail)
    else this.#ok.add(trail)
  }

  #addUnsettled(trail: Trail): void {
    this.#unsettled.push(trail)
    if (this.#unsettled.length > this.#maxUnsettled) this.#settle()
    if (this.#unsettled.length > this.#maxUnsettled) this.#ok.add(this.#unsettled.shift() as Trail)
  }

  #settle(): void {
    const settled = this.#unsettled.filter(trail => !hasOpenCall(trail))
    if (settled.length === 0) return
    this.#unsettled = this.#unsettled.filter(hasOpenCall)
    for (const trail of settled) this.#ok.add(trail)
  }

  find(query: RequestQuery): FoundRequests {
    this.#settle()
    const matches = matcherOf(query)
    const last = Math.min(query.last ?? defaultLast, maxLast)
    const hasUnsettled = query.status !== 'running' && query.status !== 'failed'
    const unsettled = hasUnsettled ? this.#unsettled.filter(matches) : []
    const ended = this.#endedOf(query).flatMap(ring => ring.newest(last + 1, matches))
    const matching = [...this.#findRunning(matches), ...unsettled, ...ended].toSorted(
      (a, b) => b.at - a.at || b.startedAt - a.startedAt
    )
    return {
      requests: matching.slice(0, last).map(recordOf),
      hasMore: matching.length > last,
      kept: { since: this.#since, ok: rangeOf(this.#ok), failed: rangeOf(this.#failed) }
    }
  }

  /** The rings that may hold a match: thousands of trails are not read in vain. */
  #endedOf({ status }: RequestQuery): Array<TrailRing | FailedTrails> {
    if (status === 'running') return []
    return status === 'failed' ? [this.#failed] : [this.#ok, this.#failed]
  }

  #findRunning(matches: (key: TrailKey) => boolean): Trail[] {
    for (const request of this.#running) this.#complete(request)
    return this.#running.map(({ trail }) => trail).filter(matches)
  }
}

function hasOpenCall({ attempts }: Trail): boolean {
  return attempts?.some(({ ms }) => ms === undefined) === true
}

/** Also an error that is sent with status 200, as some consoles want it. */
function hasFailed({ status, code }: TrailKey): boolean {
  return status >= 400 || code !== undefined
}

function matcherOf({ id, user, status, route }: RequestQuery): (key: TrailKey) => boolean {
  const hasStatus = statusMatcher(status)
  return key =>
    (id === undefined || key.requestId === id) &&
    (user === undefined || key.user === user || key.userId === user) &&
    (route === undefined || key.route === route) &&
    hasStatus(key)
}

function statusMatcher(status: string | undefined): (key: TrailKey) => boolean {
  // Of those that run all match, and of ended ones none is read.
  if (status === undefined || status === 'running') return () => true
  if (status === 'failed') return hasFailed
  const first = Number(status.replace(/xx$/, '00'))
  const last = status.endsWith('xx') ? first + 99 : first
  return key => key.status >= first && key.status <= last
}
