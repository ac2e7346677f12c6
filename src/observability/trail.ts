/** The record of a request. Stages write its members; nothing is formatted before it is read. */
import type { ErrorCode } from '../errors/errors.ts'
import { ownText } from '../bounded-map.ts'
import { newSpanId, type TraceContext } from './traces/context.ts'

export type AttemptPurpose = 'request' | 'part' | 'sign-in' | 'renewal' | 'sign-out' | 'websocket'

export interface Recorded {
  readonly trail: Trail
  readonly purpose: AttemptPurpose
  readonly part?: string
}

export class TrailAttempt {
  readonly upstream: string
  readonly address: string
  readonly purpose: AttemptPurpose
  readonly part: string | undefined
  /** As of `performance.now()`. */
  readonly startedAt = performance.now()
  /** Milliseconds to its end: the last byte of its response, or the failure. */
  ms: number | undefined = undefined
  status: number | undefined = undefined
  /** Of the failure; `left` where the response was not needed any more. */
  failure: ErrorCode | 'left' | undefined = undefined
  reason: string | undefined = undefined
  span?: { readonly id: string; readonly method: string; readonly url: string } = undefined

  constructor(upstream: string, address: string, { purpose, part }: Omit<Recorded, 'trail'>) {
    this.upstream = upstream
    this.address = address
    this.purpose = purpose
    this.part = part
  }

  beginSpan(method: string, path: string): void {
    this.span = { id: newSpanId(), method, url: this.address + pathOf(path) }
  }

  end(status?: number): void {
    this.status ??= status
    this.ms = performance.now() - this.startedAt
  }

  fail(error: unknown, failure: ErrorCode | 'left'): void {
    this.failure = failure
    const { code } = (error ?? {}) as NodeJS.ErrnoException
    if (typeof code === 'string' && code !== failure) this.reason = code
    this.end()
  }
}

export interface TrailAlias {
  readonly path: string
  readonly target: string
}

export interface TrailLimit {
  readonly limit: {
    readonly name: string
    readonly rate: { readonly windowMs: number; readonly burst: number }
    readonly enforced: boolean
  }
  readonly exceeded: boolean
  readonly remaining: number
}

/** Longer paths are cut: anyone can send them, and they are kept. */
const maxPathLength = 512

/** All members are set at once, for one hidden class. `…At` is as of `performance.now()`. */
export class Trail {
  readonly requestId: string
  readonly method: string
  /** Without the query, which may hold tokens. */
  readonly path: string
  /** Of the client; empty where its socket was closed before. */
  readonly address: string
  readonly at = Date.now()
  readonly startedAt = performance.now()
  trace: TraceContext | undefined = undefined
  /** The route's name in logs and limits; `unknown` where no route takes the request. */
  route = ''
  alias: TrailAlias | undefined = undefined
  upstream: string | undefined = undefined

  /** The place of the session; `none` where the cookie names none that is alive. */
  sessionFrom: 'cache' | 'store' | 'none' | undefined = undefined
  sessionMs = 0
  sessionAt = 0
  /** As of `Date.now()`. */
  sessionOpenedAt: number | undefined = undefined
  isSessionOver = false
  sessionEnded: string | undefined = undefined

  limits: readonly TrailLimit[] | undefined = undefined
  limitsMs = 0
  limitsAt = 0
  limit: string | undefined = undefined
  limitMax: number | undefined = undefined
  needsRoles: readonly string[] | undefined = undefined

  attempts: readonly TrailAttempt[] | undefined = undefined
  queueMs = 0
  /** To the first byte of the upstream's response. */
  upstreamMs: number | undefined = undefined
  missing: readonly string[] | undefined = undefined
  isFallback = false
  shapeMs = 0
  shapeAt = 0

  /** Of the response; 499 where the client left before its end. */
  status = 0
  /** Of the error that was sent, or because of which the response was cut. */
  code: ErrorCode | undefined = undefined
  /** Of the error that was sent, maybe under another one (`envelope.errorStatus`). */
  errorStatus: number | undefined = undefined
  /** More than the code says of what was wrong; without texts of clients. */
  reason: string | undefined = undefined
  isCut = false
  /** Bytes of the response's body, where it was complete in memory. */
  sent: number | undefined = undefined
  ms = 0
  user: string | undefined = undefined
  userId: string | undefined = undefined
  /** Public id of the session, also of one that is over. */
  session: string | undefined = undefined
  source: string | undefined = undefined

  constructor(requestId: string, method: string, target: string, address: string) {
    this.requestId = requestId
    this.method = method
    this.path = pathOf(target)
    this.address = address
  }

  get sessionAgeMs(): number | undefined {
    return this.sessionOpenedAt && Math.max(0, this.at - this.sessionOpenedAt)
  }

  /** The status by which operators count: consoles that want 200 for all hide no failure. */
  get outcome(): number {
    return this.status < 400 ? (this.errorStatus ?? this.status) : this.status
  }

  addAttempt(attempt: TrailAttempt): TrailAttempt {
    this.attempts = [...(this.attempts ?? []), attempt]
    return attempt
  }
}

/** A part of the target is copied: it would keep the whole one in memory, with its query. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  const length = Math.min(mark < 0 ? target.length : mark, maxPathLength)
  return length === target.length ? target : ownText(target.slice(0, length))
}
