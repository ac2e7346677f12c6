/** Which paths are known, and by which methods: for the answer to a request that no route takes. */
import type { FastifyInstance } from 'fastify'
import { pathsAround } from '../../config/schema/public-path.ts'

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
    for (const open of pathsAround(path, deepest)) {
      const methods = byPath.get(open)
      if (methods !== undefined) yield methods
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
