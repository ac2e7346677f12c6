/**
 * The record of a request as JSON: the line of the access log, the entry that
 * `console-gateway why` finds, and what the operators' API gives.
 */
import type { ErrorCode } from '../errors/errors.ts'
import type { Trail, TrailAlias, TrailAttempt, TrailRule, TrailVerdict } from './trail.ts'

/** Times are milliseconds. Members without a value are not written. */
export interface RequestJson {
  readonly requestId: string
  readonly traceId?: string | undefined
  /** Name in logs and limits; an alias has that of what it stands for. */
  readonly route: string
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** 499 where the client left before the end of the response. */
  readonly status: number
  readonly ms: number
  readonly code?: ErrorCode | undefined
  /** To the first byte of the upstream's response. */
  readonly upstreamMs?: number | undefined
  readonly address: string
  readonly user?: string | undefined
  readonly userId?: string | undefined
  /** Public id. */
  readonly session?: string | undefined
  /** Public id of the session that the cookie names, where that is over. */
  readonly endedSession?: string | undefined
}

/** Of a request that failed, was slow or might have changed something, also the following. */
export interface FullRequestJson extends RequestJson {
  /** When it began, ISO 8601. */
  readonly at: string
  /** More than the code says of what was wrong. */
  readonly reason?: string | undefined
  readonly alias?: TrailAlias | undefined
  readonly upstream?: string | undefined
  /** Credential source of the user. */
  readonly source?: string | undefined
  readonly sessionFrom?: Trail['sessionFrom']
  readonly sessionMs?: number | undefined
  readonly sessionAgeMs?: number | undefined
  /** Why the session is over. */
  readonly sessionEnded?: string | undefined
  /** Name of the limit or bound that refused it. */
  readonly limit?: string | undefined
  readonly limitMax?: number | undefined
  readonly limits?: readonly LimitJson[] | undefined
  readonly limitsMs?: number | undefined
  readonly needsRoles?: readonly string[] | undefined
  readonly queueMs?: number | undefined
  readonly attempts?: readonly AttemptJson[] | undefined
  /** Names of the parts that were missing. */
  readonly missing?: readonly string[] | undefined
  /** Whether the route's fixed response was sent, since the upstream failed. */
  readonly isFallback?: true | undefined
  readonly shapeMs?: number | undefined
  /** Bytes of the body; absent where only its end was known. */
  readonly sent?: number | undefined
  /** Whether the response ended before it was complete. */
  readonly isCut?: true | undefined
}

export interface LimitJson {
  readonly name: string
  /** Requests that count now, this one included; absent where the limit was not asked. */
  readonly count?: number | undefined
  readonly max: number
  readonly windowMs: number
  /** Otherwise it only counts and reports. */
  readonly isEnforced: boolean
  readonly isExceeded: boolean
}

export interface AttemptJson {
  readonly upstream: string
  readonly address: string
  readonly purpose: TrailAttempt['purpose']
  readonly part?: string | undefined
  /** From the beginning of the request. */
  readonly atMs: number
  readonly ms?: number | undefined
  readonly status?: number | undefined
  readonly failure?: TrailAttempt['failure']
  readonly reason?: string | undefined
}

const slowMs = 1000

/** Whether an ordinary line of the access log would hide something. */
export function isRemarkable(trail: Trail): boolean {
  const { status, code, isCut, isFallback, missing, ms, attempts } = trail
  return (
    status >= 400 ||
    code !== undefined ||
    isCut ||
    isFallback ||
    missing !== undefined ||
    ms > slowMs ||
    attempts?.some(({ failure }) => failure !== undefined) === true
  )
}

export function requestJson(trail: Trail): RequestJson {
  const { trace, upstreamMs } = trail
  return {
    requestId: trail.requestId,
    traceId: trace?.isLogged === true ? trace.traceId : undefined,
    route: trail.route,
    method: trail.method,
    path: trail.path,
    status: trail.status,
    ms: toHundredths(trail.ms),
    code: trail.code,
    upstreamMs: upstreamMs === undefined ? undefined : toHundredths(upstreamMs),
    address: trail.address,
    user: trail.user,
    userId: trail.userId,
    session: trail.isSessionOver ? undefined : trail.session,
    endedSession: trail.isSessionOver ? trail.session : undefined
  }
}

export function fullRequestJson(trail: Trail): FullRequestJson {
  return {
    ...requestJson(trail),
    at: new Date(trail.at).toISOString(),
    reason: trail.reason,
    alias: trail.alias,
    upstream: trail.upstream,
    source: trail.source,
    sessionFrom: trail.sessionFrom,
    sessionMs: duration(trail.sessionMs),
    sessionAgeMs: trail.sessionAgeMs,
    sessionEnded: trail.sessionEnded,
    limit: trail.limit,
    limitMax: trail.limitMax,
    limits: trail.rules.length === 0 ? undefined : limitsOf(trail),
    limitsMs: duration(trail.limitsMs),
    needsRoles: trail.needsRoles,
    queueMs: duration(trail.queueMs),
    attempts: trail.attempts?.map(attempt => attemptOf(attempt, trail.startedAt)),
    missing: trail.missing,
    isFallback: trail.isFallback || undefined,
    shapeMs: duration(trail.shapeMs),
    sent: trail.sent,
    isCut: trail.isCut || undefined
  }
}

function limitsOf({ rules, verdicts }: Trail): LimitJson[] {
  return rules.map((rule, index) => {
    const { name, rate, enforced } = rule
    const verdict = verdicts[index]
    return {
      name,
      count: verdict && countOf(rule, verdict),
      max: rate.burst,
      windowMs: rate.windowMs,
      isEnforced: enforced,
      isExceeded: verdict?.exceeded === true
    }
  })
}

function countOf({ rate }: TrailRule, { exceeded, remaining }: TrailVerdict): number {
  return exceeded ? rate.burst : rate.burst - remaining
}

function attemptOf(attempt: TrailAttempt, beganAt: number): AttemptJson {
  const { upstream, address, purpose, part, startedAt, ms, status, failure, reason } = attempt
  return {
    upstream,
    address,
    purpose,
    part,
    atMs: toHundredths(startedAt - beganAt),
    ms: ms === undefined ? undefined : toHundredths(ms),
    status,
    failure,
    reason
  }
}

/** Undefined for a step that took no time of its own. */
function duration(ms: number): number | undefined {
  return ms === 0 ? undefined : toHundredths(ms)
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
