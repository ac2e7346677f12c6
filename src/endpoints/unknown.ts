/** What no route takes: another method of a known path is 405, the console's own address its page, anything else 404. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import type { LimitsHook } from '../hooks/limits.ts'
import { opensPage, sendPage } from './console.ts'

interface Options {
  readonly checkLimits: LimitsHook
  /** What stands before every public path. */
  readonly mount: string
  readonly hasConsole: boolean
}

/** Before any route is added: it takes note of them. */
export function addUnknown (app: FastifyInstance, { checkLimits, mount, hasConsole }: Options): void {
  const methodsAt = noteMethods(app)
  const isPage = (request: FastifyRequest) => hasConsole && opensPage(request, mount)
  app.setNotFoundHandler({
    preHandler: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => isPage(request) ? done() : checkLimits(request, reply, done)
  }, (request, reply) => {
    const target = request.raw.url ?? ''
    const allowed = methodsAt(target)
    // RFC 9110 §15.5.6
    if (allowed !== undefined) throw new GatewayError('route.method', { headers: { allow: [...allowed].join(', ') } })
    if (isPage(request)) return sendPage(reply)
    const message = target.startsWith(`${mount}/api/api/`) ? 'There is nothing at this address. The console’s base URL ends in /api, and its paths begin with /api too: leave it out of the base URL.' : undefined
    throw new GatewayError('route.unknown', message === undefined ? {} : { message })
  })
}

/**
 * Found again without the router, which has a tree for each method: to have every path in all of them would
 * double what a generation costs to build.
 * @returns the methods of the nearest path that a request's target fits
 */
function noteMethods (app: FastifyInstance): (target: string) => ReadonlySet<string> | undefined {
  const byPath = new Map<string, Set<string>>()
  const withParameters: Array<readonly [RegExp, ReadonlySet<string>]> = []
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.access === undefined) return
    let methods = byPath.get(url)
    if (methods === undefined) {
      byPath.set(url, methods = new Set())
      if (url.includes('/:')) withParameters.push([new RegExp(`^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\/:\w+/g, '/[^/]+')}$`), methods])
    }
    for (const each of [method].flat()) methods.add(each)
  })
  return target => {
    const mark = target.indexOf('?')
    const path = mark < 0 ? target : target.slice(0, mark)
    const found = byPath.get(path) ?? withParameters.find(([pattern]) => pattern.test(path))?.[1]
    if (found !== undefined) return found
    for (let slash = path.lastIndexOf('/'); slash >= 0; slash = path.lastIndexOf('/', slash - 1)) {
      const below = byPath.get(`${path.slice(0, slash)}/*`)
      if (below !== undefined) return below
      if (slash === 0) break
    }
    return undefined
  }
}
