/** The record of a request as JSON: for the access log, `why`, and the operators' API. */
import type { Trail, TrailAttempt, TrailLimit } from './trail.ts'

/** As `fullRequestJson` writes it; members without a value are not in the text. */
export type FullRequestJson = ReturnType<typeof fullRequestJson>
export type LimitJson = ReturnType<typeof limitOf>
export type AttemptJson = ReturnType<typeof attemptOf>

const slowMs = 1000

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

export function requestJson(trail: Trail) {
  const { trace, upstreamMs } = trail
  return {
    requestId: trail.requestId,
    traceId: trace?.isLogged === true ? trace.traceId : undefined,
    route: trail.route,
    method: trail.method,
    path: trail.path,
    status: trail.status,
    errorStatus: trail.outcome === trail.status ? undefined : trail.outcome,
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

export function fullRequestJson(trail: Trail) {
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
    limits: trail.limits?.map(limitOf),
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

function limitOf({ limit: { name, rate, enforced }, exceeded, remaining }: TrailLimit) {
  return {
    name,
    count: rate.burst - (exceeded ? 0 : remaining),
    max: rate.burst,
    windowMs: rate.windowMs,
    isEnforced: enforced,
    isExceeded: exceeded
  }
}

function attemptOf(attempt: TrailAttempt, beganAt: number) {
  const { startedAt, ms, span: _, ...facts } = attempt
  return {
    ...facts,
    atMs: toHundredths(startedAt - beganAt),
    ms: ms === undefined ? undefined : toHundredths(ms)
  }
}

/** Undefined for a step that took no time of its own. */
function duration(ms: number): number | undefined {
  return ms === 0 ? undefined : toHundredths(ms)
}

export function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}
