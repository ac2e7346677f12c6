/** Precedence of public paths: `/api/*` matches all below `/api`, unless a longer path matches. */

/** Sorts matching paths, or their part before `*`, so that the most specific comes first. */
export const nearerFirst = (a: string, b: string): number => b.length - a.length

/**
 * The paths ending in `/*` that also match this path, the most specific first.
 * @param maxSlashes the most slashes of any known path. Bounded: clients choose the target.
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

/** Empty and dot segments are ambiguous: clients and servers resolve them differently. */
export function hasDotSegments(path: string): boolean {
  const segments = path.split('/').slice(1)
  return path !== '/' && segments.some(segment => ['', '.', '..'].includes(segment))
}

/** Adds HEAD to GET. */
export const withHead = (methods: readonly string[]): string[] =>
  methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
