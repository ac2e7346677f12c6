/** How public paths relate: `/api/*` takes everything below `/api`, unless a nearer path is there. */

/** For sorting paths, or what stands before their `*`: of several that fit, the nearer one first. */
export const nearerFirst = (a: string, b: string): number => b.length - a.length

/**
 * The paths ending in `/*` that take this one too, the nearest first.
 * @param maxSlashes no path of interest has more: bounded, since clients choose how many a target has
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

/** Clients and servers resolve such segments, so a path with them has several readings. */
export function hasDotSegments(path: string): boolean {
  const segments = path.split('/').slice(1)
  return path !== '/' && segments.some(segment => ['', '.', '..'].includes(segment))
}

/** GET brings HEAD. */
export const withHead = (methods: readonly string[]): string[] =>
  methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
