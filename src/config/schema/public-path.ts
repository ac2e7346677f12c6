/** Precedence of public paths: of `/api/*`, `/api/:id` and `/api/a` the most specific matches. */

/** For sorting: text, then `:name`, then `*`. */
export function nearerFirst(a: string, b: string): number {
  const [segments, others] = [a.split('/'), b.split('/')]
  const length = Math.min(segments.length, others.length)
  for (let at = 0; at < length; at++) {
    const difference = rankOf(segments[at] ?? '') - rankOf(others[at] ?? '')
    if (difference !== 0) return difference
  }
  return others.length - segments.length
}

function rankOf(segment: string): number {
  if (segment === '*') return 2
  return segment.startsWith(':') ? 1 : 0
}

export const hasParameters = (path: string): boolean => path.includes('/:')

/** As they are written: `:name` and `*`. */
export const variablesOf = (path: string): string[] =>
  path.split('/').filter(segment => /^[:*]/.test(segment))

/** Whether a path takes a target. @param target path of a request, without query */
export function takes(path: string, target: string): boolean {
  const segments = path.split('/')
  // One more than the path has: clients choose how many segments a target has.
  return isWithin(target.split('/', segments.length + 1), segments, segment => segment !== '')
}

/** Whether a path takes all that another path takes. */
export function contains(outer: string, inner: string): boolean {
  return isWithin(inner.split('/'), outer.split('/'), segment => segment !== '*')
}

/** The nearest of the paths that take all of a path. */
export const nearestOf = (paths: readonly string[], path: string): string | undefined =>
  paths.filter(outer => contains(outer, path)).toSorted(nearerFirst)[0]

function isWithin(
  inner: readonly string[],
  outer: readonly string[],
  fitsParameter: (segment: string) => boolean
) {
  for (const [at, segment] of outer.entries()) {
    const other = inner[at]
    if (other === undefined) return false
    if (segment === '*') return true
    if (segment.startsWith(':') ? !fitsParameter(other) : segment !== other) return false
  }
  return inner.length === outer.length
}

/** The path that takes what both take. */
export function overlapOf(segments: readonly string[], others: readonly string[]) {
  const shared: string[] = []
  for (let at = 0; at < Math.max(segments.length, others.length); at++) {
    const [segment, other] = [segments[at], others[at]]
    if (segment === undefined || other === undefined) return undefined
    if (segment === '*') return [...shared, ...others.slice(at)].join('/')
    if (other === '*') return [...shared, ...segments.slice(at)].join('/')
    if (segment !== other && rankOf(segment) + rankOf(other) === 0) return undefined
    shared.push(rankOf(segment) > rankOf(other) ? other : segment)
  }
  return shared.join('/')
}

const emptyParameter = '([^/]+)'

/** The path as the router takes it: there `:name` at the end would take an empty segment too. */
export const toRouterPath = (path: string): string =>
  /\/:\w+$/.test(path) ? path + emptyParameter : path

export const fromRouterPath = (url: string): string =>
  url.endsWith(emptyParameter) ? url.slice(0, -emptyParameter.length) : url

/**
 * The paths ending in `/*` that also match this path, the most specific first.
 * @param maxSlashes of any known path: clients choose the target
 */
export function pathsAround(path: string, maxSlashes = Infinity): string[] {
  const end = path.endsWith('/*') ? path.length - 2 : path.length
  const around: string[] = []
  for (let at = path.indexOf('/'); at !== -1 && at < end; at = path.indexOf('/', at + 1)) {
    if (around.length === maxSlashes) break
    around.push(`${path.slice(0, at)}/*`)
  }
  return around.toReversed()
}

export const withHead = (methods: readonly string[]): string[] =>
  methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
