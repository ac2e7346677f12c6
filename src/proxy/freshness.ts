/**
 * How long a response may serve further requests of the user who got it: RFC 9111 for a private
 * cache, without heuristics. What cannot be read counts as not fresh.
 */
type Headers = Readonly<Record<string, string | string[] | undefined>>

export interface Freshness {
  /** Whether it may be kept at all. */
  readonly mayStore: boolean
  /** Whether it has to be validated before each further use (§5.2.2.4). */
  readonly mustValidate: boolean
  /** Whether it may be used when it is not fresh and the upstream cannot be asked (§4.2.4). */
  readonly mayBeStale: boolean
  /** §4.2.1 */
  readonly lifetimeMs: number
  /** Its age when it was received (§4.2.3). */
  readonly initialAgeMs: number
}

/** The client's wishes about copies (§5.2.1). */
export interface Wishes {
  readonly mayStore: boolean
  readonly mustValidate: boolean
  readonly maxAgeMs: number
  readonly minFreshMs: number
}

/** @param delayMs how long the response took */
export function freshnessOf(headers: Headers, receivedAt: number, delayMs: number): Freshness {
  const directives = directivesOf(headers['cache-control'])
  const hasNoCache =
    directives.has('no-cache') ||
    (headers['cache-control'] === undefined && hasToken(headers['pragma'], 'no-cache'))
  const date = dateOf(headers['date']) ?? receivedAt
  const age = secondsOf(textOf(headers['age'])) ?? 0
  return {
    mayStore: !directives.has('no-store') && !hasToken(headers['vary'], '*'),
    mustValidate: hasNoCache,
    mayBeStale: !hasNoCache && !directives.has('must-revalidate'),
    lifetimeMs: lifetimeOf(headers, directives, date),
    initialAgeMs: Math.max(0, receivedAt - date, age + delayMs)
  }
}

export function wishesOf(headers: Headers): Wishes {
  const directives = directivesOf(headers['cache-control'])
  const maxAge = directives.get('max-age')
  return {
    mayStore: !directives.has('no-store'),
    mustValidate: directives.has('no-cache') || hasToken(headers['pragma'], 'no-cache'),
    maxAgeMs: maxAge === undefined ? Infinity : (secondsOf(maxAge) ?? 0),
    minFreshMs: secondsOf(directives.get('min-fresh')) ?? 0
  }
}

/** Whether a response differs by one of the headers of the request (RFC 9110 §12.5.5). */
export function variesBy(headers: Headers, names: ReadonlySet<string>): boolean {
  return textOf(headers['vary'])
    .split(',')
    .some(name => names.has(name.trim().toLowerCase()))
}

function lifetimeOf(
  headers: Headers,
  directives: ReadonlyMap<string, string>,
  date: number
): number {
  const maxAge = directives.get('max-age')
  if (maxAge !== undefined) return secondsOf(maxAge) ?? 0
  if (headers['expires'] === undefined) return 0
  return Math.max(0, (dateOf(headers['expires']) ?? 0) - date)
}

/** Names in lower case. Of a directive that stands there twice, both count as not readable. */
function directivesOf(header: string | string[] | undefined): ReadonlyMap<string, string> {
  const directives = new Map<string, string>()
  for (const each of textOf(header).split(',')) {
    const mark = each.indexOf('=')
    const name = (mark < 0 ? each : each.slice(0, mark)).trim().toLowerCase()
    const value = mark < 0 ? '' : each.slice(mark + 1).trim()
    if (name !== '') directives.set(name, directives.has(name) ? '' : value)
  }
  return directives
}

function hasToken(header: string | string[] | undefined, token: string): boolean {
  return textOf(header)
    .split(',')
    .some(each => each.trim().toLowerCase() === token)
}

/** In milliseconds; undefined for what is no number of seconds. */
function secondsOf(text: string | undefined): number | undefined {
  const digits = text?.replace(/^"(.*)"$/, '$1') ?? ''
  return /^[0-9]{1,10}$/.test(digits) ? Number(digits) * 1000 : undefined
}

function dateOf(header: string | string[] | undefined): number | undefined {
  // Only the preferred format (RFC 9110 §5.6.7): Date.parse would also take `0` or `2026`.
  const text = textOf(header)
  if (!/^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT$/.test(text)) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

function textOf(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(',') : (header ?? '')
}
