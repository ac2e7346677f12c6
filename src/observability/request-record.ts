/** A trail as JSON, for commands, the operators' API and the page. Made when somebody asks. */
import type { ErrorCode } from '../errors.ts'
import type { Trail, TrailAlias, TrailAttempt, TrailRule, TrailVerdict } from './trail.ts'

/** Times are milliseconds; `atMs` counts from the beginning of the request. */
export interface RequestRecord {
  readonly id: string
  /** ISO 8601. */
  readonly at: string
  /** Until now, if it is still running. */
  readonly ms: number
  readonly isRunning: boolean
  readonly method: string
  readonly path: string
  readonly address: string
  readonly route: string
  readonly alias?: TrailAlias | undefined
  readonly upstream?: string | undefined
  /** 0 while it is running. */
  readonly status: number
  readonly code?: ErrorCode | undefined
  /** Whether the response ended before it was complete. */
  readonly isCut: boolean
  /** Name of the limit or bound that refused it. */
  readonly limit?: string | undefined
  readonly limitMax?: number | undefined
  readonly needsRoles?: readonly string[] | undefined
  readonly user?: string | undefined
  readonly userId?: string | undefined
  readonly source?: string | undefined
  readonly session?: SessionRecord | undefined
  readonly limits?: readonly LimitRecord[] | undefined
  readonly limitsMs?: number | undefined
  readonly attempts?: readonly AttemptRecord[] | undefined
  readonly queueMs?: number | undefined
  readonly upstreamMs?: number | undefined
  readonly missing?: readonly string[] | undefined
  /** Whether the route's fixed response was sent, since the upstream failed. */
  readonly isFallback?: true | undefined
  readonly shapeMs?: number | undefined
  /** Bytes of the body; undefined where only its end was known. */
  readonly sent?: number | undefined
  readonly traceId?: string | undefined
}

export interface SessionRecord {
  /** Public id. */
  readonly id?: string | undefined
  readonly from?: Trail['sessionFrom']
  readonly ms?: number | undefined
  readonly ageMs?: number | undefined
  readonly ended?: string | undefined
}

export interface LimitRecord {
  readonly name: string
  /** Requests that count now, this one included; undefined where the limit was not asked. */
  readonly count?: number | undefined
  readonly max: number
  readonly windowMs: number
  readonly isEnforced: boolean
  readonly isExceeded: boolean
}

export interface AttemptRecord {
  readonly upstream: string
  readonly address: string
  readonly purpose: TrailAttempt['purpose']
  readonly part?: string | undefined
  readonly atMs: number
  readonly ms?: number | undefined
  readonly status?: number | undefined
  readonly failure?: TrailAttempt['failure']
  readonly reason?: string | undefined
}

export function recordOf(trail: Trail): RequestRecord {
  const { rules, attempts } = trail
  const isRunning = trail.place >= 0
  return {
    id: trail.requestId,
    at: new Date(trail.at).toISOString(),
    ms: toHundredths(isRunning ? performance.now() - trail.startedAt : trail.ms),
    isRunning,
    method: trail.method,
    path: trail.path,
    address: trail.address,
    route: trail.route,
    alias: trail.alias,
    upstream: trail.upstream,
    status: trail.status,
    code: trail.code,
    isCut: trail.isCut,
    limit: trail.limit,
    limitMax: trail.limitMax,
    needsRoles: trail.needsRoles,
    user: trail.user,
    userId: trail.userId,
    source: trail.source,
    session: sessionOf(trail),
    limits: rules.length === 0 ? undefined : limitsOf(trail),
    limitsMs: duration(trail.limitsMs),
    attempts: attempts?.map(attempt => attemptOf(attempt, trail.startedAt)),
    queueMs: duration(trail.queueMs),
    upstreamMs: trail.upstreamMs === undefined ? undefined : toHundredths(trail.upstreamMs),
    missing: trail.missing,
    isFallback: trail.isFallback || undefined,
    shapeMs: duration(trail.shapeMs),
    sent: trail.sent,
    traceId: trail.trace?.traceId
  }
}

function sessionOf(trail: Trail): SessionRecord | undefined {
  const { session, sessionFrom, sessionMs, sessionAgeMs, sessionEnded } = trail
  if (session === undefined && sessionFrom === undefined) return undefined
  return {
    id: session,
    from: sessionFrom,
    ms: duration(sessionMs),
    ageMs: sessionAgeMs,
    ended: sessionEnded
  }
}

function limitsOf({ rules, verdicts }: Trail): LimitRecord[] {
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

function attemptOf(attempt: TrailAttempt, beganAt: number): AttemptRecord {
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

export function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
