/** Plain words for people: the story of a request, step by step. */
import errorAdvice from '../errors/advice.json' with { type: 'json' }
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import type { KeptRequest } from './failures.ts'
import type { AttemptJson, FullRequestJson, LimitJson } from './request-json.ts'

export interface Step {
  readonly name: string
  readonly text: string
  readonly atMs?: number
  readonly ms?: number | undefined
}

const fallback = 'the upstream failed: answered by the fixed response of the route'
const cut = 'cut: the client left, or the connection was ended'

export const stateTexts = {
  up: 'works',
  open: 'does not work: requests failed',
  unhealthy: 'does not work: health checks fail'
}

const timeUnits = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's']
] as const

export function requestSteps(request: FullRequestJson): Step[] {
  return [...decisionSteps(request), ...errorSteps(request)]
}

export function storyOf(request: KeptRequest): Step[] {
  const { requestId, at, address, replica } = request
  return [
    { name: 'request', text: `${requestId}, at ${at} from ${address}, replica ${replica}` },
    ...decisionSteps(request),
    ...responseSteps(request),
    ...errorSteps(request)
  ]
}

function* decisionSteps(request: FullRequestJson): Generator<Step> {
  const { route, alias } = request
  const called = alias && `, called as ${alias.path}, an alias of ${alias.target}`
  yield { name: 'route', text: route + (called ?? '') }
  yield* userSteps(request)
  yield* sessionSteps(request)
  yield* limitSteps(request)
  yield* upstreamSteps(request)
}

function* userSteps({ user, userId, source, needsRoles }: FullRequestJson): Generator<Step> {
  const id = userId === undefined ? '' : ` (id ${userId})`
  const by = source === undefined ? '' : `, signed in by ${source}`
  if (user !== undefined) yield { name: 'user', text: user + id + by }
  if (needsRoles === undefined) return
  const roles = needsRoles.join(', ')
  yield { name: 'user', text: `has none of the roles that the route needs: ${roles}` }
}

function* sessionSteps(request: FullRequestJson): Generator<Step> {
  const { session, endedSession, sessionFrom, sessionMs, sessionAgeMs, sessionEnded } = request
  const id = session ?? endedSession
  if (id === undefined && sessionFrom === undefined) return
  const age = sessionAgeMs === undefined ? '' : `, ${duration(sessionAgeMs)} old`
  const asked = sessionMs === undefined ? '' : ` in ${duration(sessionMs)}`
  const told = {
    cache: `${age}, found in the cache of the process`,
    store: `${age}, read from the store${asked}`,
    none: sessionEnded === undefined ? age : ` is over (${sessionEnded}), as the store said${asked}`
  }
  const text = (id ?? 'unknown') + told[sessionFrom ?? 'none']
  yield { name: 'session', text, atMs: 0, ms: sessionMs }
}

function* limitSteps(request: FullRequestJson): Generator<Step> {
  const { limits = [], limitsMs, limit, limitMax } = request
  let asked = limitsMs === undefined ? '' : `; the counters answered in ${duration(limitsMs)}`
  for (const each of limits) {
    yield { name: 'limits', text: limitText(each, limit) + asked }
    asked = ''
  }
  if (limit === undefined || limits.some(({ name }) => name === limit)) return
  const max = limitMax === undefined ? '' : `, which allows ${limitMax}`
  yield { name: 'limits', text: `refused by ${limit}${max}` }
}

function limitText(record: LimitJson, refusedBy: string | undefined): string {
  const { name, count, max, windowMs, isEnforced, isExceeded } = record
  const window = `in ${duration(windowMs)}`
  const shadow = isEnforced ? '' : ', in shadow'
  const exceeded = isExceeded ? ': exceeded' : ''
  const verdict = name === refusedBy ? ': refused the request' : exceeded
  return `${name} ${count} of ${max} ${window}${shadow}${verdict}`
}

function* upstreamSteps(request: FullRequestJson): Generator<Step> {
  const { attempts = [], queueMs, upstream, isFallback, missing } = request
  if (queueMs !== undefined) {
    const text = `waited ${duration(queueMs)} for a connection to ${upstream}`
    yield { name: 'queue', text, ms: queueMs }
  }
  for (const attempt of attempts) {
    const { atMs, ms } = attempt
    yield { name: 'upstream', text: attemptText(attempt), atMs, ms }
  }
  if (isFallback === true) yield { name: 'fallback', text: fallback }
  if (missing !== undefined) yield { name: 'parts', text: `missing: ${missing.join(', ')}` }
}

function attemptText(attempt: AttemptJson): string {
  const { upstream, address, purpose, part, atMs, ms, status, failure, reason } = attempt
  const aim = part === undefined ? purpose : `part ${part}`
  const aimText = aim === 'request' ? '' : `, for the ${aim}`
  const time = ms === undefined ? 'still running' : `after ${duration(ms)}`
  const outcome =
    failure === undefined ? String(status ?? 'no response yet') : failureText(failure, reason)
  return `${upstream} ${address}${aimText}, at ${duration(atMs)}: ${outcome} ${time}`
}

function failureText(failure: string, reason: string | undefined): string {
  if (failure === 'left') return 'given up, since nobody needed it any more,'
  return reason === undefined ? failure : `${failure} (${reason})`
}

function* responseSteps(request: FullRequestJson): Generator<Step> {
  const { shapeMs, status, sent, isCut, ms } = request
  if (shapeMs !== undefined) yield { name: 'shape', text: duration(shapeMs) }
  const bytes = sent === undefined ? '' : `, ${sent} bytes`
  yield { name: 'sent', text: isCut === true ? cut : `${status}${bytes}`, atMs: 0, ms }
}

function* errorSteps({ code, reason }: FullRequestJson): Generator<Step> {
  const known = adviceOf(code)
  if (code !== undefined) yield { name: 'error', text: known ? `${code}: ${known.message}` : code }
  if (reason !== undefined) yield { name: 'reason', text: reason }
  if (known !== undefined) yield { name: 'to do', text: known.advice }
}

/** What an error says, and what to do; a replica of another version may have one of its own. */
export function adviceOf(code: ErrorCode | undefined) {
  if (code === undefined || !Object.hasOwn(errorKinds, code)) return undefined
  return { message: errorKinds[code].en, advice: errorAdvice[code] }
}

export function duration(ms: number): string {
  const [length, unit] = timeUnits.find(([each]) => ms >= each) ?? [1, 'ms']
  return `${Number((ms / length).toPrecision(3))} ${unit}`
}
