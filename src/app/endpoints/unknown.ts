/** Requests that no route takes: 405 for a known path, a page for the console's, else 404. */
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
import { GatewayError } from '../../errors/errors.ts'
import type { RequestHook } from '../hooks/context.ts'
import { opensPage } from './console.ts'

export type KnownPaths = ReturnType<typeof collectMethods>

/** Beside the router: every path in all its trees, one a method, would double the build time. */
export function collectMethods(app: FastifyInstance) {
  const byPath = new Map<string, Set<string>>()
  const withParameters: string[] = []
  let deepest = 0
  app.addHook('onRoute', ({ url: routerUrl, method, config }) => {
    if (config?.access === undefined) return
    const url = fromRouterPath(routerUrl)
    if (url.endsWith('/*')) deepest = Math.max(deepest, url.split('/').length)
    if (!byPath.has(url) && hasParameters(url)) withParameters.push(url)
    byPath.set(url, new Set([...(byPath.get(url) ?? []), ...[method].flat()]))
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
      const [nearest = ''] = around(target.split('?', 1)[0] ?? '', takes)
      return byPath.get(nearest)
    },
    /** Whether escapes such as `%40` hide a nearer path, which a back-end may read. */
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
      [...byPath].map(([path, methods]) => {
        const others = around(path, contains).flatMap(other => [...(byPath.get(other) ?? [])])
        return [toRouterPath(path), [...new Set(others).difference(methods)]]
      })
  }
}

const doubledBase =
  'There is nothing at this address. The console’s base URL ends in /api, and its paths begin with ' +
  '/api too: leave it out of the base URL.'

export function addUnknown(app: FastifyInstance, known: KnownPaths, checkLimits: RequestHook) {
  // The nearest path decides alone: a method that it does not take must not reach a wider `/*`.
  app.register(async scope => {
    for (const [url, method] of known.lostMethods()) {
      if (method.length === 0) continue
      scope.route({ url, method, handler: (_request, reply) => reply.callNotFound() })
    }
  })
  app.setNotFoundHandler(
    {
      preHandler: (request, reply, done) =>
        opensPage(request) ? done() : checkLimits(request, reply, done)
    },
    (request, reply) => {
      const target = request.raw.url ?? ''
      const allowed = known.methodsAt(target)
      if (allowed !== undefined) {
        // RFC 9110 §15.5.6
        throw new GatewayError('route.method', { headers: { allow: [...allowed].join(', ') } })
      }
      if (opensPage(request)) return reply.sendFile('index.html')
      const isDoubled = target.startsWith(`${app.gateway.mount}/api/api/`)
      throw new GatewayError('route.unknown', isDoubled ? { message: doubledBase } : {})
    }
  )
}
