/** Requests in plain words. Names and paths come from clients, so all text is escaped. */
import errorAdvice from '../errors/advice.json' with { type: 'json' }
import { errorKinds } from '../errors/errors.ts'
import type { FoundRequests, KeptRequest as Request } from '../observability/failures.ts'
import type { AttemptJson, FullRequestJson, LimitJson } from '../observability/request-json.ts'
import { printable } from '../observability/unprintable.ts'
import { table } from './admin-client.ts'
import type { Output } from './command.ts'
import { paint } from './colours.ts'

type Row = readonly [name: string, text: string]

const fallbackRow: Row = [
  'fallback',
  'the upstream failed: answered by the fixed response of the route'
]

const purposes: Readonly<Record<AttemptJson['purpose'], string>> = {
  'request': '',
  'part': '',
  'sign-in': ', for the sign-in',
  'renewal': ', for a new token',
  'sign-out': ', for the sign-out',
  'websocket': ', for a WebSocket'
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's']
] as const

/** What was decided before a back-end was asked, and what failed. */
export function requestRows(request: FullRequestJson): Row[] {
  return [
    ['route', routeText(request)],
    ...userRows(request),
    ...sessionRows(request),
    ...limitRows(request),
    ...upstreamRows(request),
    ...errorRows(request)
  ]
}

/** The whole story of one request. */
export function formatRequest(request: Request, stream: Output): string {
  const { requestId, at, address, replica, status, ms } = request
  const head = `${request.method} ${request.path} → ${status}, ${formatMs(ms)}`
  const rows: readonly Row[] = [
    ['request', `${requestId}, at ${at} from ${address}, replica ${replica}`],
    ['route', routeText(request)],
    ...userRows(request),
    ...sessionRows(request),
    ...limitRows(request),
    ...upstreamRows(request),
    ...responseRows(request),
    ...errorRows(request)
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, text], index) => {
    const isRepeated = rows[index - 1]?.[0] === name
    return `  ${(isRepeated ? '' : name).padEnd(width)}  ${printable(text)}\n`
  })
  return `${paint('bold', printable(head), stream)}\n${lines.join('')}`
}

/** One line each. */
export function formatRequests(requests: readonly Request[], stream: Output): string {
  const rows = requests.map(({ at, requestId, user = '', method, path, code = '', ...request }) => [
    at,
    requestId,
    user,
    `${method} ${path}`,
    String(request.status),
    code,
    formatMs(request.ms)
  ])
  return table([['AT', 'REQUEST', 'USER', 'WHAT', 'STATUS', 'CODE', 'TIME'], ...rows], stream)
}

/** A note on what is kept. */
export function formatKept({ oldestAt, problem }: FoundRequests): string {
  const kept =
    oldestAt === undefined ? '' : `The oldest request that is kept began at ${oldestAt}.\n`
  return `${kept}${problem === undefined ? '' : `${problem}.\n`}`
}

function routeText({ route, alias }: FullRequestJson): string {
  return alias === undefined
    ? route
    : `${route}, called as ${alias.path}, an alias of ${alias.target}`
}

function userRows({ user, userId, source, needsRoles }: FullRequestJson): Row[] {
  const by = source === undefined ? '' : `, signed in by ${source}`
  return [
    ...(user === undefined
      ? []
      : [['user', `${user}${userId === undefined ? '' : ` (id ${userId})`}${by}`] as const]),
    ...(needsRoles === undefined
      ? []
      : [['user', `has none of the roles that the route needs: ${needsRoles.join(', ')}`] as const])
  ]
}

function sessionRows(request: FullRequestJson): Row[] {
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
  return [['session', id + told[sessionFrom ?? 'none']]]
}

function limitRows({ limits = [], limitsMs, limit, limitMax }: FullRequestJson): Row[] {
  const isRule = limits.some(({ name }) => name === limit)
  const asked = limitsMs === undefined ? '' : `; the counters answered in ${formatMs(limitsMs)}`
  const rows = limits.map((each, index): Row => [
    'limits',
    limitText(each, limit) + (index === 0 ? asked : '')
  ])
  if (limit === undefined || isRule) return rows
  const max = limitMax === undefined ? '' : `, which allows ${limitMax}`
  return [...rows, ['limits', `refused by ${limit}${max}`]]
}

function limitText(record: LimitJson, refusedBy: string | undefined): string {
  const { name, count, max, windowMs, isEnforced, isExceeded } = record
  const window = `in ${formatAge(windowMs)}`
  const shadow = isEnforced ? '' : ', in shadow'
  const exceeded = isExceeded ? ': exceeded' : ''
  const verdict = name === refusedBy ? ': refused the request' : exceeded
  return `${name} ${count} of ${max} ${window}${shadow}${verdict}`
}

function upstreamRows(request: FullRequestJson): Row[] {
  const { attempts = [], queueMs, upstream, isFallback, missing } = request
  return [
    ...(queueMs === undefined
      ? []
      : [['queue', `waited ${formatMs(queueMs)} for a connection to ${upstream ?? ''}`] as const]),
    ...attempts.map((attempt): Row => ['upstream', attemptText(attempt)]),
    ...(isFallback === true ? [fallbackRow] : []),
    ...(missing === undefined ? [] : [['parts', `missing: ${missing.join(', ')}`] as const])
  ]
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

function responseRows({ shapeMs, status, sent, isCut }: FullRequestJson): Row[] {
  const bytes = sent === undefined ? '' : `, ${sent} bytes`
  const end =
    isCut === true ? 'cut: the client left, or the connection was ended' : `${status}${bytes}`
  return [...(shapeMs === undefined ? [] : [['shape', formatMs(shapeMs)] as const]), ['sent', end]]
}

function errorRows({ code, reason }: FullRequestJson): Row[] {
  const reasons: Row[] = reason === undefined ? [] : [['reason', reason]]
  if (code === undefined) return reasons
  // A replica of another version may have codes that this one does not know.
  if (!Object.hasOwn(errorKinds, code)) return [['error', code], ...reasons]
  return [['error', `${code}: ${errorKinds[code].en}`], ...reasons, ['to do', errorAdvice[code]]]
}

function formatMs(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${Math.round(ms / 10) / 100} s`
}

/** The largest unit, and the next where there is a rest. */
function formatAge(ms: number): string {
  const index = units.findIndex(([length]) => ms >= length)
  const [length, unit] = units[index] ?? []
  if (length === undefined) return `${Math.round(ms)} ms`
  const [shorter, shorterUnit] = units[index + 1] ?? []
  const rest = shorter === undefined ? 0 : Math.floor((ms % length) / shorter)
  return `${Math.floor(ms / length)} ${unit}${rest === 0 ? '' : ` ${rest} ${shorterUnit}`}`
}
