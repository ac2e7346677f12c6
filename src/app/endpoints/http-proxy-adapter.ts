/**
 * The adapter to @fastify/http-proxy and its @fastify/reply-from.
 *
 * The plugin carries requests with a body: its parsers hand the body on as a stream, `reply.from`
 * frames it and copies the response's headers, cleaned, into the reply. A request without a body
 * goes to the upstream directly (`forwardWithoutBody`): the plugin copies headers twice and parses
 * three URLs, which costs more than all our hooks.
 *
 * Five things make it fit:
 * - One registration takes one set of options for many paths, since a registration costs more than
 *   a route. So `scope.route` is replaced within its scope: the plugin's routes get the handler,
 *   the methods and the config of the route that owns the path.
 * - Its `undici` option takes any object with a `request`, and calls it in undici's place: ours
 *   sends through the upstream's pool, with its queue, clocks and error codes.
 * - A symbol among the headers is how `reply.from` hands the exchange to that `request`. Headers
 *   are the one object that it passes on; it copies them with their symbols.
 * - A failure is sent from `request` itself, and the plugin's callback is left uncalled: told of
 *   an error it would log it once more, wrap it, and lose its code.
 * - A small body is collected bytes in an object with the `destroy` of a stream (`CollectedBody`),
 *   which the plugin hands on as it is.
 */
import { type BodyMapping, mapBody } from '../../proxy/body-mapping.ts'
import { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { toRouterPath } from '../../config/schema/public-path.ts'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { maxCollectedBytes, readBody, watchRate } from '../../proxy/request-body.ts'
import { abort, type UpstreamResponse } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { ProxiedExchange } from './exchange.ts'
import {
  type CompiledRoute,
  compileProxied,
  forwardWithoutBody,
  type ProxiedOptions,
  type ProxiedRoute,
  startExchange
} from './proxied.ts'
import { runResponseStages } from './response-stages.ts'
import { takeUpgrades, type WebSocketServices } from './websocket.ts'

const exchangeKey = Symbol('exchange')

/** Of one registration, in which no request is answered. All in one would take 274 ms of CPU, but at once. */
const maxPaths = 10

/**
 * Adds routes to a scope whose hooks check the request first.
 * perf: one registration for ten paths takes 57 % off the CPU time of a build (1,000 routes, by
 * turns: 408 ms, not 942); without it each route is registered by itself.
 * @param yieldToRequests is awaited after each registration
 */
export async function addProxied(
  scope: FastifyInstance,
  routes: readonly ProxiedRoute[],
  options: ProxiedOptions & { readonly webSockets: WebSocketServices },
  yieldToRequests: () => Promise<void>
): Promise<void> {
  for (const [upstream, ofUpstream] of Map.groupBy(routes, route => route.upstream)) {
    let group = new Map<string, CompiledRoute>()
    const register = async () => {
      await scope.register(addGroup, { upstream, group, webSockets: options.webSockets })
      group = new Map()
      await yieldToRequests()
    }
    for (const route of ofUpstream) {
      const paths = route.paths.map(toRouterPath)
      // A path may have several routes, each with other methods.
      if (group.size >= maxPaths || paths.some(path => group.has(path))) await register()
      const compiled = compileProxied(route, options)
      for (const path of paths) group.set(path, compiled)
    }
    await register()
  }
}

interface Group {
  readonly upstream: Upstream
  /** By public path, as the router takes it. */
  readonly group: ReadonlyMap<string, CompiledRoute>
  readonly webSockets: WebSocketServices
}

async function addGroup(
  scope: FastifyInstance,
  { upstream, group, webSockets }: Group
): Promise<void> {
  const { route: addRoute } = scope as {
    readonly route: (this: FastifyInstance, options: RouteOptions) => FastifyInstance
  }
  // `this` is the scope that the plugin makes below this one.
  scope.route = function (this: FastifyInstance, options: RouteOptions) {
    const route = group.get(options.url)
    return addRoute.call(
      this,
      route === undefined ? options : { ...options, ...routeOf(route, webSockets) }
    )
  } as typeof scope.route
  await scope.register(httpProxy, {
    upstream: upstream.origin,
    routes: [...group.keys()],
    undici: { request: pluginRequest(upstream) } as never,
    disableRequestLogging: true,
    retryMethods: [],
    cacheURLs: 1000,
    internalRewriteLocationHeader: false
  })
}

type OwnOptions = Pick<RouteOptions, 'method' | 'config' | 'handler' | 'onRequest'>

function routeOf(route: CompiledRoute, webSockets: WebSocketServices): OwnOptions {
  const handler = handlerOf(route)
  const { webSocket } = route.route
  return {
    ...route.options,
    ...(webSocket === undefined ? { handler } : takeUpgrades(route, webSocket, webSockets, handler))
  }
}

function handlerOf(route: CompiledRoute) {
  const replyOptions: NonNullable<Parameters<FastifyReply['from']>[1]> = {
    rewriteRequestHeaders: request => {
      const exchange = request.exchange as ProxiedExchange
      return { ...exchange.headers, [exchangeKey]: exchange } as never
    },
    rewriteHeaders: headers => route.toClientHeaders(headers as UpstreamResponse['headers']),
    onResponse: request => finish(route, request.exchange as ProxiedExchange),
    // The plugin's own retries are off: the upstream knows better when one is safe.
    retryDelay: () => null,
    onError: (reply, { error }) => {
      reply.send(toGatewayError(error))
    }
  }
  return (request: FastifyRequest, reply: FastifyReply) => {
    if (request.body === undefined || request.body === null) {
      return forwardWithoutBody(route, request, reply)
    }
    const exchange = startExchange(route, request, reply)
    const { path } = exchange
    const mark = path.indexOf('?')
    // The plugin adds the client's query; what is sent is the exchange's own path and query.
    return reply.from(mark < 0 ? path : path.slice(0, mark), replyOptions)
  }
}

function finish({ stages }: CompiledRoute, exchange: ProxiedExchange): void {
  const { response, reply } = exchange
  if (response === undefined) return
  // A part of the response may have failed: its error was sent instead.
  if (reply.sent) return void response.body.destroy()
  exchange.areHeadersCopied = true
  runResponseStages(stages.response, exchange, response)
}

interface PluginRequest {
  readonly headers: Record<PropertyKey, unknown> & { readonly [exchangeKey]: ProxiedExchange }
  readonly body?: unknown
}

type PluginCallback = (
  error: null,
  response: {
    readonly statusCode: number
    readonly headers: UpstreamResponse['headers']
    readonly body: UpstreamResponse['body']
  }
) => void

/** Replaces undici's `request`. */
function pluginRequest(upstream: Upstream) {
  return function request({ headers, body }: PluginRequest, done: PluginCallback): void {
    const exchange = headers[exchangeKey]
    const read = exchange.bodyMapping === undefined ? readPluginBody : readMappedBody
    read(exchange, body, (error, whole) => {
      if (error !== null) return fail(exchange, error)
      exchange.body = whole ?? null
      upstream.dispatch(exchange, exchange, (failure, response) => {
        if (response === undefined) {
          // A refused request did not reach undici, which otherwise ends its body.
          if (whole instanceof Readable) whole.destroy()
          return fail(exchange, failure)
        }
        exchange.response = response
        done(null, {
          statusCode: response.status,
          headers: response.headers,
          body: response.body
        })
      })
    })
  }
}

type BodyCallback = (error: GatewayError | null, body?: Buffer | Readable | string) => void

function readPluginBody(exchange: ProxiedExchange, body: unknown, done: BodyCallback): void {
  if (!(body instanceof Readable)) {
    return typeof body === 'string' && body !== '' ? done(null, body) : done(null)
  }
  const length = announcedLength(exchange)
  const bounds = {
    collectBytes: length === undefined ? maxCollectedBytes : exchange.collectBytes,
    maxBytes: exchange.maxBodyBytes
  }
  readBody(body, length, bounds, (error, whole) => {
    if (whole === undefined) return done(error ?? new GatewayError('request.malformed'))
    if (whole instanceof Readable) {
      exchange.upload = whole
      endSlowUpload(body, exchange)
    }
    done(null, whole)
  })
}

/** Undefined for a body in chunks. */
function announcedLength({ headers }: ProxiedExchange): number | undefined {
  const { 'content-length': length } = headers
  return length === undefined ? undefined : Number(length)
}

/** Reads the whole body, however it is framed, and makes the upstream's of it. */
function readMappedBody(exchange: ProxiedExchange, body: unknown, done: BodyCallback): void {
  const { bodyMapping, maxBodyBytes } = exchange
  if (bodyMapping === undefined || !(body instanceof Readable)) return done(null)
  const collectBytes = Math.min(bodyMapping.maxBytes, maxBodyBytes)
  readBody(
    body,
    announcedLength(exchange),
    { collectBytes, maxBytes: maxBodyBytes },
    (error, whole) => {
      if (whole === undefined) return done(error ?? new GatewayError('request.malformed'))
      if (whole instanceof Readable) {
        whole.destroy()
        return done(new GatewayError('request.too-large'))
      }
      exchange.request.clientBody = whole
      // An empty body has no type.
      if (whole.length === 0) return done(null)
      void sendMapped(whole, exchange, bodyMapping, done)
    }
  )
}

async function sendMapped(
  whole: Buffer,
  { headers }: ProxiedExchange,
  mapping: BodyMapping,
  done: BodyCallback
): Promise<void> {
  let body: string
  try {
    body = await mapBody(whole, headers, mapping)
  } catch (error) {
    return done(toGatewayError(error))
  }
  done(null, body)
}

/** Ends a slow upload, unless its response has begun. */
function endSlowUpload(body: Readable, exchange: ProxiedExchange): void {
  watchRate(body, () => {
    if (exchange.firstByteMs === undefined) abort(exchange, new GatewayError('request.timeout'))
  })
}

function fail({ isGone, reply }: ProxiedExchange, error: unknown): void {
  if (!isGone && !reply.sent) reply.send(toGatewayError(error))
}
