/**
 * The record of one request that the access log, `console-gateway why`, traces and the audit
 * ledger read. Stages only write its members; nothing is formatted before it is read.
 */
import type { ErrorCode } from '../errors.ts'
import { ownText } from '../bounded-map.ts'
import type { TraceContext } from './traces/trace-context.ts'

/** One request to a back-end. Times as of `performance.now()`. */
export interface TrailAttempt {
  /** Name of the upstream, in `routes.yaml`. */
  readonly upstream: string
  /** `HOST:PORT` that was asked. */
  readonly address: string
  readonly startedAt: number
  /** Milliseconds to the end of the attempt: its whole body, or the failure. */
  ms: number | undefined
  /** Of the response. */
  status: number | undefined
  /** Of the failure. */
  code: ErrorCode | undefined
}

/** A limit that applied to the request; the rules of `limits/counting`. */
export interface TrailRule {
  readonly name: string
  readonly kind: 'fixed' | 'sliding' | 'bucket'
  readonly max: number
  readonly windowMs: number
  readonly burst: number
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
}

/** The state of a limit after the request was counted; the verdicts of `limits/counting`. */
export interface TrailVerdict {
  readonly exceeded: boolean
  readonly remaining: number
  readonly resetMs: number
  readonly retryMs: number
}

/** Longer paths are cut: anyone can send them, and they are kept. */
const maxPathLength = 512

const noRules: readonly TrailRule[] = []
const noVerdicts: readonly TrailVerdict[] = []

/** All members are set at once: trails have one hidden class. */
export class Trail {
  readonly requestId: string
  readonly method: string
  /** Without the query, which may hold tokens. */
  readonly path: string
  /** Of the client; empty where its socket was closed before. */
  readonly address: string
  /** When it began, as of `Date.now()`. */
  readonly at = Date.now()
  /** When it began, as of `performance.now()`. */
  readonly startedAt = performance.now()
  trace: TraceContext | undefined = undefined
  /** The route's name in logs and limits; `unknown` where no route takes the request. */
  route = ''
  /** The route's path that was called, where it is an alias. */
  alias: string | undefined = undefined

  /** Where the session was found; `none` where the cookie names none that is alive. */
  sessionFrom: 'cache' | 'store' | 'none' | undefined = undefined
  /** Milliseconds of the session's lookup. */
  sessionMs = 0
  /** Milliseconds since the session was opened. */
  sessionAgeMs: number | undefined = undefined
  /** Why the session that the cookie names is over. */
  sessionEnded: string | undefined = undefined

  /** The limits that applied, in the order of `verdicts`. */
  rules = noRules
  verdicts = noVerdicts
  /** Milliseconds of asking the limits. */
  limitsMs = 0
  /** Name of the limit, or of another bound, that refused the request. */
  limit: string | undefined = undefined

  /** Requests to back-ends: the route's, its parts', those of a sign-in or a token's renewal. */
  attempts: TrailAttempt[] | undefined = undefined
  /** Milliseconds in the upstream's queue. */
  queueMs = 0
  /** Milliseconds to the first byte of the upstream's response. */
  upstreamMs: number | undefined = undefined
  /** Names of the parts that were missing. */
  missing: string[] | undefined = undefined
  /** Where the response came from, if not from a call of its own. */
  copy: 'shared' | 'kept' | 'stale' | undefined = undefined
  shapeMs = 0
  /** Milliseconds of waiting for Redis. */
  redisMs = 0

  /** Of the response; 499 where the client left before its end. */
  status = 0
  /** Of the error that was sent, or because of which the response was cut. */
  code: ErrorCode | undefined = undefined
  /** Whether the response ended before it was complete. */
  isCut = false
  /** Bytes of the response's body, where it was complete in memory. */
  sent: number | undefined = undefined
  /** Milliseconds from its beginning to its end. */
  ms = 0
  user: string | undefined = undefined
  userId: string | undefined = undefined
  /** Public id of the session, also of one that is over. */
  session: string | undefined = undefined

  constructor(requestId: string, method: string, target: string, address: string) {
    this.requestId = requestId
    this.method = method
    this.path = pathOf(target)
    this.address = address
  }
}

/** A part of the target is copied: it would keep the whole one in memory, with its query. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  const length = Math.min(mark < 0 ? target.length : mark, maxPathLength)
  return length === target.length ? target : ownText(target.slice(0, length))
}
