/**
 * A route that goes to an upstream, as a list of stages: made once when the app is built, run per
 * request. Before them stand the hooks of its scope (`app.ts`): origin, limits, guard, maintenance.
 */
import { Readable } from 'node:stream'
import type { QueryMaps } from '../../config/schema/resolved.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { FallbackConfig } from '../../config/schema/fallback.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import type { WebSocketConfig } from '../../config/schema/websocket.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { toGatewayError } from '../../errors.ts'
import { responseHeaders, requestHeaders } from '../../proxy/headers.ts'
import { createRewrite } from '../../proxy/path.ts'
import { isBodyPending, maxCollectedBytes } from '../../proxy/request-body.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { TimeOuts } from '../../proxy/time-outs.ts'
import type { TokenNames } from '../../proxy/token-names.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { BindStream } from './bound-stream.ts'
import { type ExchangeOptions, ProxiedExchange } from './exchange.ts'
import { hasFailed, sendFallback } from './fallback.ts'
import type { PartsOptions } from './pending-parts.ts'
import {
  partsStage,
  queryMapsStage,
  queryStage,
  requestHeadersStage,
  type RequestStage,
  rewriteStage
} from './request-stages.ts'
import {
  browserCacheStage,
  errorStage,
  observeStage,
  redirectStage,
  relayStage,
  responseHeadersStage,
  type ResponseStage,
  runResponseStages,
  sendEmpty,
  sendHead,
  sendRedirect,
  sendShapedHead,
  shapeEmptyStage,
  shapeStage,
  varyStage
} from './response-stages.ts'
import { openCookiesStage, type SealedCookiesOf, sealCookiesStage } from './sealed-cookies.ts'
import type { Shaping } from './shaped.ts'
import { createBinding, type StreamedRoute } from './streamed-response.ts'

export interface ProxiedRoute extends StreamedRoute {
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  /** Whether the upstream is called with GET and without a body, whatever the client's method. */
  readonly isReadOnly?: boolean
  readonly upstream: Upstream
  readonly upstreamName: string
  /** At the upstream, without its base. */
  readonly upstreamPath: string
  /** Without it the query passes byte for byte. */
  readonly query?: QueryMaps | undefined
  /** Without it the request's body passes byte for byte. */
  readonly body?: BodyMapping | undefined
  readonly timeoutMs: number
  /** Of the response after its first byte. */
  readonly timeOuts: TimeOuts
  /** Whether a call keeps the session from going idle. */
  readonly touch: boolean
  readonly maxBody: number
  /** Without it, bodies pass byte for byte. */
  readonly shaping?: Shaping
  /** Sees JSON that passes byte for byte, where it was small enough to be collected. */
  readonly observe?: (bytes: Buffer, headers: UpstreamResponse['headers']) => void
  readonly envelope?: Envelope
  readonly errorStatus: 'own' | 'ok'
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  readonly passRefusedHeaders: readonly string[]
  readonly setCookies: readonly string[]
  /** Those that the browser keeps sealed: the ones that pass, and the ones that are set. */
  readonly sealedCookies?: { readonly pass: readonly string[]; readonly set: readonly string[] }
  readonly redirects: 'refuse' | 'pass'
  /** Whether the browser may keep responses as long as the upstream's `Cache-Control` says. */
  readonly cachesInBrowser?: boolean
  readonly fallback?: FallbackConfig | undefined
  /** Without it upgrades are refused. */
  readonly webSocket?: WebSocketRoute | undefined
}

/** The settings of a route that takes upgrades to WebSocket. */
export interface WebSocketRoute extends WebSocketConfig {
  /** Whether connections keep their session alive: only if config says so itself. */
  readonly touch: boolean
}

export interface ProxiedOptions extends PartsOptions {
  readonly identity: GatewayConfig['identity']
  /** `server.mount`, the prefix of every public path. */
  readonly mount: string
  readonly bindStream: BindStream
  readonly tokenNames: TokenNames
  readonly sealedCookies?: SealedCookiesOf
}

/** Longer than the upstream's own timeout: that one logs a stalled reader, so it must end first. */
const afterUpstreamMs = 1000

export interface Stages {
  readonly request: readonly RequestStage[]
  readonly response: readonly ResponseStage[]
}

/** A compiled route: its Fastify options, its stages, and the options of its exchanges. */
export interface CompiledRoute {
  readonly options: Pick<RouteOptions, 'method' | 'config' | 'preHandler'>
  readonly upstream: Upstream
  readonly exchange: ExchangeOptions
  readonly toClientHeaders: ReturnType<typeof responseHeaders>
  readonly stages: Stages
  readonly route: ProxiedRoute
}

export function compileProxied(route: ProxiedRoute, options: ProxiedOptions): CompiledRoute {
  const { upstream, shaping } = route
  const toClientHeaders = responseHeaders({
    setCookies: route.setCookies,
    mayCache: route.access === 'public' && shaping?.parts === undefined,
    shaped: shaping !== undefined
  })
  return {
    options: {
      method: withHead(route.methods),
      config: configOf(route),
      ...(route.isReadOnly === true && { preHandler: dropBody })
    },
    upstream,
    exchange: {
      timeoutMs: route.timeoutMs,
      timeOuts: route.timeOuts,
      collectBytes: shaping?.maxShaped ?? maxCollectedBytes,
      collectOnly: shaping !== undefined,
      maxBodyBytes: route.maxBody,
      isReadOnly: route.isReadOnly === true,
      bodyMapping: route.body
    },
    toClientHeaders,
    stages: stagesOf(route, options, toClientHeaders),
    route
  }
}

/** The stages of a route; one that is not configured is left out. */
function stagesOf(
  route: ProxiedRoute,
  options: ProxiedOptions,
  toClientHeaders: CompiledRoute['toClientHeaders']
): Stages {
  const { name, upstream, shaping, observe, redirects } = route
  const { origin, origins, base } = upstream
  const { tokenNames } = options
  const publicPaths = route.paths.map(path => options.mount + path)
  const rewrite = createRewrite(publicPaths, route.upstreamPath, base)
  const sealed = options.sealedCookies?.get(route.upstreamName)
  const { pass = [], set = [] } = route.sealedCookies ?? {}
  const bind = createBinding(route, options.bindStream)
  const takesHead = route.methods.includes('GET')
  return {
    request: onlyConfigured<RequestStage>([
      rewriteStage(rewrite),
      tokenNames.query && queryStage(tokenNames.query.strip),
      route.query && queryMapsStage(route.query),
      requestHeadersStage(requestHeadersOf(route, options), options.forwardedHost),
      pass.length > 0 && sealed && openCookiesStage(sealed, pass),
      shaping?.parts && partsStage(name, { ...shaping, parts: shaping.parts }, options)
    ]),
    response: onlyConfigured<ResponseStage>([
      responseHeadersStage(toClientHeaders, shaping === undefined),
      set.length > 0 && sealed && sealCookiesStage(sealed, set),
      varyStage(shaping && 'accept-encoding'),
      route.cachesInBrowser === true && browserCacheStage,
      redirectStage({ origin, origins, rewrite, redirects }),
      errorStage(shaping === undefined, upstream.config.errors),
      ...(shaping === undefined
        ? [sendEmpty, takesHead && sendHead, observe && observeStage(observe), relayStage(bind)]
        : [
            shapeEmptyStage(shaping),
            sendRedirect,
            takesHead && sendShapedHead,
            shapeStage(shaping, bind)
          ])
    ])
  }
}

function onlyConfigured<Stage>(stages: ReadonlyArray<Stage | false | undefined>): Stage[] {
  return stages.flatMap(stage => (stage === false || stage === undefined ? [] : [stage]))
}

function requestHeadersOf(route: ProxiedRoute, { identity, tokenNames }: ProxiedOptions) {
  const { config } = route.upstream
  const credential = credentialOf(config.credential)
  return requestHeaders({
    identity,
    tokenNames,
    tellIdentity: config.identity,
    credential: credential.as,
    credentialScheme: credential.scheme,
    credentialFrom: credential.from,
    passHeaders: config.passHeaders,
    passRefusedHeaders: route.passRefusedHeaders,
    passAuthorization: route.passAuthorization,
    passCookies: route.passCookies,
    shaped: route.shaping !== undefined
  })
}

function configOf(route: ProxiedRoute): NonNullable<RouteOptions['config']> {
  const { config } = route.upstream
  const credential = credentialOf(config.credential)
  return {
    ...(credential.from !== undefined && { credentialFrom: credential.from }),
    route: route.name,
    upstream: route.upstreamName,
    access: route.access,
    maxBody: route.maxBody,
    touch: route.touch,
    ...(route.webSocket !== undefined && { takesUpgrades: true }),
    stallMs: route.timeOuts.idleMs + afterUpstreamMs,
    ...(route.envelope && { envelope: route.envelope }),
    errorStatus: route.errorStatus
  }
}

/** The body that the client sends with POST for a profile, in place of GET. */
function dropBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body instanceof Readable) request.body.resume()
  request.body = undefined
  done()
}

/** Runs the stages before the upstream is called. @throws GatewayError */
export function startExchange(
  { exchange: options, stages }: CompiledRoute,
  request: FastifyRequest,
  reply: FastifyReply
): ProxiedExchange {
  const exchange = new ProxiedExchange(request, reply, options)
  for (const stage of stages.request) stage(exchange)
  return exchange
}

/** A request without a body: straight to the upstream, and its response through the stages. */
export function forwardWithoutBody(
  route: CompiledRoute,
  request: FastifyRequest,
  reply: FastifyReply
): void {
  const exchange = startExchange(route, request, reply)
  route.upstream.dispatch(exchange, exchange, (error, response) => {
    if (exchange.isGone) return response?.body.destroy()
    const { fallback } = route.route
    if (fallback !== undefined && !reply.sent && isRead(exchange) && hasFailed(error, response)) {
      response?.body.destroy()
      return sendFallback(exchange, fallback)
    }
    if (response === undefined) return void reply.send(toGatewayError(error))
    reply.code(response.status)
    if (isBodyPending(request.raw)) reply.header('connection', 'close')
    runResponseStages(route.stages.response, exchange, response)
  })
}

function isRead({ method }: ProxiedExchange): boolean {
  return method === 'GET' || method === 'HEAD'
}
