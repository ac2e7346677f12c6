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

/** After all routes. */
export function addUnknown (app: FastifyInstance, { checkLimits, mount, hasConsole }: Options): void {
  const known = noteMethods(app)
  // The nearer path decides alone: what it does not take must not fall to a `/*` around it.
  app.register(async scope => {
    scope.addHook('onRequest', checkLimits)
    for (const [url, methods] of known.fallingThrough()) scope.route({ url, method: methods, handler: request => { throw refused(known.at(request.raw.url ?? '')) } })
  })
  const isPage = (request: FastifyRequest) => hasConsole && opensPage(request, mount)
  app.setNotFoundHandler({
    preHandler: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => isPage(request) ? done() : checkLimits(request, reply, done)
  }, (request, reply) => {
    const target = request.raw.url ?? ''
    const allowed = known.at(target)
    if (allowed !== undefined) throw refused(allowed)
    if (isPage(request)) return sendPage(reply)
    const message = target.startsWith(`${mount}/api/api/`) ? 'There is nothing at this address. The console’s base URL ends in /api, and its paths begin with /api too: leave it out of the base URL.' : undefined
    throw new GatewayError('route.unknown', message === undefined ? {} : { message })
  })
}

/** RFC 9110 §15.5.6 */
const refused = (allowed: ReadonlySet<string> = new Set()) => new GatewayError('route.method', { headers: { allow: [...allowed].join(', ') } })

interface Known {
  /** The methods of the nearest path that a request's target fits; undefined where it fits none. */
  readonly at: (target: string) => ReadonlySet<string> | undefined
  /** Of each path the methods that it does not take, but one around it does. */
  readonly fallingThrough: () => Array<[url: string, methods: string[]]>
}

/**
 * Found again without the router, which has a tree for each method: to have every path in all of them would
 * double what a generation costs to build.
 */
function noteMethods (app: FastifyInstance): Known {
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

  /** From the nearest on. */
  function * around (path: string): Generator<ReadonlySet<string>> {
    const exact = byPath.get(path)
    if (exact !== undefined) yield exact
    for (const [pattern, methods] of withParameters) if (pattern.test(path)) yield methods
    const end = path.endsWith('/*') ? path.length - 2 : path.length
    for (let slash = path.lastIndexOf('/', end - 1); slash >= 0; slash = slash === 0 ? -1 : path.lastIndexOf('/', slash - 1)) {
      const below = byPath.get(`${path.slice(0, slash)}/*`)
      if (below !== undefined) yield below
    }
  }

  return {
    at: target => around(target.split('?', 1)[0] ?? '').next().value ?? undefined,
    fallingThrough: () => [...byPath].flatMap(([url, own]) => {
      const others = new Set([...around(url)].flatMap(methods => [...methods]))
      const lost = [...others].filter(method => !own.has(method))
      return lost.length === 0 ? [] : [[url, lost] as [string, string[]]]
    })
  }
}
