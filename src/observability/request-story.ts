/** The story of a request in plain words: what was decided, asked and answered, step by step. */
import errorAdvice from '../errors/advice.json' with { type: 'json' }
import { errorKinds } from '../errors/errors.ts'
import type { KeptRequest } from './failures.ts'
import type { AttemptJson, FullRequestJson, LimitJson } from './request-json.ts'

export interface Step {
  readonly name: string
  readonly text: string
  /** From the beginning of the request; where it is known. */
  readonly atMs?: number
  /** Undefined for a step that took no time of its own. */
  readonly ms?: number | undefined
}

const fallback = 'the upstream failed: answered by the fixed response of the route'

const purposes: Readonly<Record<AttemptJson['purpose'], string>> = {
  'request': '',
  'part': '',
  'sign-in': ', for the sign-in',
  'renewal': ', for a new token',
  'sign-out': ', for the sign-out',
  'websocket': ', for a WebSocket'
}

export const timeUnits = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's']
] as const

/** The steps without a head and without what was sent, as `explain` shows them. */
export function requestSteps(request: FullRequestJson): Step[] {
  return [...decisionSteps(request), ...errorSteps(request)]
}

/** The whole story. */
export function storyOf(request: KeptRequest): Step[] {
  const { requestId, at, address, replica } = request
  return [
    { name: 'request', text: `${requestId}, at ${at} from ${address}, replica ${replica}` },
    ...decisionSteps(request),
    ...responseSteps(request),
    ...errorSteps(request)
  ]
}

function decisionSteps(request: FullRequestJson): Step[] {
  return [
    { name: 'route', text: routeText(request) },
    ...userSteps(request),
    ...sessionSteps(request),
    ...limitSteps(request),
    ...upstreamSteps(request)
  ]
}

function routeText({ route, alias }: FullRequestJson): string {
  return alias === undefined
    ? route
    : `${route}, called as ${alias.path}, an alias of ${alias.target}`
}

function userSteps({ user, userId, source, needsRoles }: FullRequestJson): Step[] {
  const id = userId === undefined ? '' : ` (id ${userId})`
  const by = source === undefined ? '' : `, signed in by ${source}`
  const roles = `has none of the roles that the route needs: ${needsRoles?.join(', ')}`
  return [
    ...(user === undefined ? [] : [{ name: 'user', text: user + id + by }]),
    ...(needsRoles === undefined ? [] : [{ name: 'user', text: roles }])
  ]
}

function sessionSteps(request: FullRequestJson): Step[] {
  const { session, endedSession, sessionFrom, sessionMs, sessionAgeMs, sessionEnded } = request
  if (session === undefined && endedSession === undefined && sessionFrom === undefined) return []
  const id = session ?? endedSession ?? 'unknown'
  const age = sessionAgeMs === undefined ? '' : `, ${formatAge(sessionAgeMs)} old`
  const asked = sessionMs === undefined ? '' : ` in ${formatMs(sessionMs)}`
  const told = {
    cache: `${age}, found in the cache of the process`,
    store: `${age}, read from the store${asked}`,
    none: sessionEnded === undefined ? age : ` is over (${sessionEnded}), as the store said${asked}`
  }
  return [{ name: 'session', text: id + told[sessionFrom ?? 'none'], atMs: 0, ms: sessionMs }]
}

function limitSteps({ limits = [], limitsMs, limit, limitMax }: FullRequestJson): Step[] {
  const isRule = limits.some(({ name }) => name === limit)
  const asked = limitsMs === undefined ? '' : `; the counters answered in ${formatMs(limitsMs)}`
  const steps = limits.map((each, index) => ({
    name: 'limits',
    text: limitText(each, limit) + (index === 0 ? asked : '')
  }))
  if (limit === undefined || isRule) return steps
  const max = limitMax === undefined ? '' : `, which allows ${limitMax}`
  return [...steps, { name: 'limits', text: `refused by ${limit}${max}` }]
}

function limitText(record: LimitJson, refusedBy: string | undefined): string {
  const { name, count, max, windowMs, isEnforced, isExceeded } = record
  const window = `in ${formatAge(windowMs)}`
  const shadow = isEnforced ? '' : ', in shadow'
  const exceeded = isExceeded ? ': exceeded' : ''
  const verdict = name === refusedBy ? ': refused the request' : exceeded
  return `${name} ${count} of ${max} ${window}${shadow}${verdict}`
}

function upstreamSteps(request: FullRequestJson): Step[] {
  const { attempts = [], queueMs, upstream = '', isFallback, missing } = request
  const calls = attempts.map(attempt => ({
    name: 'upstream',
    text: attemptText(attempt),
    atMs: attempt.atMs,
    ms: attempt.ms
  }))
  const parts = `missing: ${missing?.join(', ')}`
  return [
    ...(queueMs === undefined ? [] : [queueStep(queueMs, upstream)]),
    ...calls,
    ...(isFallback === true ? [{ name: 'fallback', text: fallback }] : []),
    ...(missing === undefined ? [] : [{ name: 'parts', text: parts }])
  ]
}

function queueStep(ms: number, upstream: string): Step {
  return { name: 'queue', text: `waited ${formatMs(ms)} for a connection to ${upstream}`, ms }
}

function attemptText(attempt: AttemptJson): string {
  const { upstream, address, purpose, part, atMs, ms, status, failure, reason } = attempt
  const purposeText = part === undefined ? purposes[purpose] : `, for part ${part}`
  const time = ms === undefined ? 'still running' : `after ${formatMs(ms)}`
  const outcome =
    failure === undefined ? String(status ?? 'no response yet') : failureText(failure, reason)
  return `${upstream} ${address}${purposeText}, at ${formatMs(atMs)}: ${outcome} ${time}`
}

function failureText(failure: string, reason: string | undefined): string {
  if (failure === 'left') return 'given up, since nobody needed it any more,'
  return reason === undefined ? failure : `${failure} (${reason})`
}

function responseSteps({ shapeMs, status, sent, isCut, ms }: FullRequestJson): Step[] {
  const bytes = sent === undefined ? '' : `, ${sent} bytes`
  const end =
    isCut === true ? 'cut: the client left, or the connection was ended' : `${status}${bytes}`
  const shape = shapeMs === undefined ? [] : [{ name: 'shape', text: formatMs(shapeMs) }]
  return [...shape, { name: 'sent', text: end, atMs: 0, ms }]
}

function errorSteps({ code, reason }: FullRequestJson): Step[] {
  const reasons = reason === undefined ? [] : [{ name: 'reason', text: reason }]
  if (code === undefined) return reasons
  // A replica of another version may have codes that this one does not know.
  if (!Object.hasOwn(errorKinds, code)) return [{ name: 'error', text: code }, ...reasons]
  return [
    { name: 'error', text: `${code}: ${errorKinds[code].en}` },
    ...reasons,
    { name: 'to do', text: errorAdvice[code] }
  ]
}

export function formatMs(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${Math.round(ms / 10) / 100} s`
}

/** The largest unit, and the next where there is a rest. */
function formatAge(ms: number): string {
  const index = timeUnits.findIndex(([length]) => ms >= length)
  const [length, unit] = timeUnits[index] ?? []
  if (length === undefined) return `${Math.round(ms)} ms`
  const [shorter, shorterUnit] = timeUnits[index + 1] ?? []
  const rest = shorter === undefined ? 0 : Math.floor((ms % length) / shorter)
  return `${Math.floor(ms / length)} ${unit}${rest === 0 ? '' : ` ${rest} ${shorterUnit}`}`
}
