/** Which paths are known, and by which methods: for the answer to a request that no route takes. */
import type { FastifyInstance } from 'fastify'

export interface KnownPaths {
  /** The methods of the nearest path that a request's target fits; undefined where it fits none. */
  readonly at: (target: string) => ReadonlySet<string> | undefined
  /** Of each path the methods that it does not take, but one around it does. */
  readonly fallingThrough: () => Array<[url: string, methods: string[]]>
}

/**
 * Found again without the router, which has a tree for each method: to have every path in all of
 * them would double what a generation costs to build.
 */
export function noteMethods(app: FastifyInstance): KnownPaths {
  const byPath = new Map<string, Set<string>>()
  const withParameters: Array<readonly [RegExp, ReadonlySet<string>]> = []
  let deepest = 0
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.access === undefined) return
    if (url.endsWith('/*')) deepest = Math.max(deepest, url.split('/').length)
    let methods = byPath.get(url)
    if (methods === undefined) {
      byPath.set(url, (methods = new Set()))
      if (url.includes('/:')) withParameters.push([patternOf(url), methods])
    }
    for (const each of [method].flat()) methods.add(each)
  })

  /** From the nearest on. */
  function* around(path: string): Generator<ReadonlySet<string>> {
    const exact = byPath.get(path)
    if (exact !== undefined) yield exact
    for (const [pattern, methods] of withParameters) if (pattern.test(path)) yield methods
    const end = path.endsWith('/*') ? path.length - 2 : path.length
    for (const slash of slashesIn(path, end, deepest).toReversed()) {
      const below = byPath.get(`${path.slice(0, slash)}/*`)
      if (below !== undefined) yield below
    }
  }

  return {
    at: target => around(target.split('?', 1)[0] ?? '').next().value ?? undefined,
    fallingThrough: () =>
      [...byPath].flatMap(([url, own]) => {
        const others = new Set([...around(url)].flatMap(methods => [...methods]))
        const lost = [...others].filter(method => !own.has(method))
        return lost.length === 0 ? [] : [[url, lost] as [string, string[]]]
      })
  }
}

function patternOf(url: string): RegExp {
  const escaped = url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/\/:\w+/g, '/[^/]+')}$`)
}

/**
 * The places of the first slashes. No more than any known path has: clients choose how many there
 * are, and each costs the length of the path.
 */
function slashesIn(path: string, end: number, most: number): number[] {
  const slashes: number[] = []
  for (let at = path.indexOf('/'); at !== -1 && at < end; at = path.indexOf('/', at + 1)) {
    if (slashes.length === most) break
    slashes.push(at)
  }
  return slashes
}
