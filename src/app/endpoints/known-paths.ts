/**
 * The known paths and their methods, for the response to a request that no route takes, and for
 * paths that would get past a nearer one.
 */
import type { FastifyInstance } from 'fastify'
import {
  contains,
  fromRouterPath,
  hasParameters,
  nearerFirst,
  pathsAround,
  takes,
  toRouterPath
} from '../../config/schema/public-path.ts'

export type KnownPaths = ReturnType<typeof collectMethods>

/**
 * Collected beside the router, which has a tree for each method: every path in all of them would
 * double the build time of a generation.
 */
export function collectMethods(app: FastifyInstance) {
  const byPath = new Map<string, Set<string>>()
  const withParameters: string[] = []
  let deepest = 0
  app.addHook('onRoute', ({ url: routerUrl, method, config }) => {
    if (config?.access === undefined) return
    const url = fromRouterPath(routerUrl)
    if (url.endsWith('/*')) deepest = Math.max(deepest, url.split('/').length)
    let methods = byPath.get(url)
    if (methods === undefined) {
      byPath.set(url, (methods = new Set()))
      if (hasParameters(url)) withParameters.push(url)
    }
    for (const each of [method].flat()) methods.add(each)
  })

  /** The known paths around a path, the nearest first; with itself, if it is known. */
  const around = (path: string, fits: (path: string, other: string) => boolean): string[] =>
    [
      ...(byPath.has(path) ? [path] : []),
      ...withParameters.filter(template => template !== path && fits(template, path)),
      ...pathsAround(path, deepest).filter(open => byPath.has(open))
    ].toSorted(nearerFirst)

  return {
    /** The methods of the nearest path that a target fits; undefined where it fits none. */
    methodsAt: (target: string): ReadonlySet<string> | undefined => {
      const [nearest] = around(target.split('?', 1)[0] ?? '', takes)
      return nearest === undefined ? undefined : byPath.get(nearest)
    },
    /**
     * Whether escapes that the router keeps, such as `%40`, hide a nearer path: a back-end that
     * decodes them reads that one.
     * @param path of a request, whose escapes can all be decoded
     */
    hidesNearer: (path: string): boolean => {
      if (!path.includes('%')) return false
      const [kept, decoded] = [decodeURI(path), decodeURIComponent(path)]
      if (kept === decoded) return false
      const [nearest, hidden] = [around(kept, takes)[0], around(decoded, takes)[0]]
      if (hidden === undefined) return false
      return nearest === undefined || nearerFirst(hidden, nearest) < 0
    },
    /** Of each path the methods that only a wider path (`/*`) takes. */
    lostMethods: (): Array<[url: string, methods: string[]]> =>
      [...byPath].flatMap(([url, methods]) => {
        const others = around(url, contains).flatMap(path => [...(byPath.get(path) ?? [])])
        const lost = [...new Set(others)].filter(method => !methods.has(method))
        return lost.length === 0 ? [] : [[toRouterPath(url), lost]]
      })
  }
}
