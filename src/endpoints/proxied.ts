/** Every route that goes to an upstream: compiled once when the app is built, run per request. */
import { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config/gateway.ts'
import type { Envelope } from '../envelope.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { clientAddress } from '../hooks/address.ts'
import type { Access } from '../hooks/context.ts'
import { liveSession } from '../hooks/session.ts'
import { CollectedBody, type Exchange } from '../proxy/answer.ts'
import { answerFields, requestFields } from '../proxy/headers.ts'
import { createRewrite } from '../proxy/path.ts'
import { exchangeKey, FailedBody, type Upstream } from '../proxy/upstream.ts'
import type { Session } from '../session/record.ts'

export interface ProxiedRoute {
  readonly name: string
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: Access
  readonly upstream: Upstream
  readonly upstreamName: string
  /** At the upstream, without its base. */
  readonly upstreamPath: string
  readonly timeoutMs: number
  /** Whether a call keeps the session from going idle. */
  readonly touch: boolean
  readonly maxBody: number
  /** May throw a GatewayError: what the back-end says in its body of how it went. */
  readonly shape?: (body: unknown, session: Session | undefined) => unknown
  readonly envelope?: Envelope
  readonly errorStatus?: 'own' | 'ok'
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  readonly setCookies: readonly string[]
  readonly redirects: 'refuse' | 'pass'
}

interface Options {
  readonly identity: GatewayConfig['identity']
  readonly maxShapedBytes: number
  /** What stands before every public path. */
  readonly mount: string
  /** The hosts that config lists: only such a one is told to upstreams. */
  readonly hosts: readonly string[]
}

/** Bodies up to this size are collected and sent in one write; streams cost more than they save below it. */
const collectBytes = 64 * 1024

type Answer = Parameters<NonNullable<NonNullable<Parameters<FastifyReply['from']>[1]>['onResponse']>>[2] & { statusCode: number, headers: Record<string, string | string[] | undefined>, stream: unknown }

/** Adds a route to a scope whose hooks have let the request pass by then. */
export function addProxied (scope: FastifyInstance, route: ProxiedRoute, { identity, maxShapedBytes, mount, hosts }: Options): void {
  const { upstream, shape } = route
  const rewrite = createRewrite(route.paths.map(path => mount + path), route.upstreamPath, upstream.base)
  const toFields = requestFields({ identity, tellIdentity: upstream.config.identity, credential: upstream.config.credential, passAuthorization: route.passAuthorization, passCookies: route.passCookies, plainAnswer: shape !== undefined })
  const toAnswerFields = answerFields({ setCookies: route.setCookies, mayCache: route.access === 'public' })

  const replyOptions: NonNullable<Parameters<FastifyReply['from']>[1]> = {
    rewriteRequestHeaders: request => upstreamFields(request as FastifyRequest) as never,
    rewriteHeaders: fields => toAnswerFields(fields as Answer['headers']) as never,
    onResponse: ((request: FastifyRequest, reply: FastifyReply, answer: Answer) => {
      try {
        pass(request, reply, answer)
      } catch (error) {
        discard(answer.stream)
        reply.send(toGatewayError(error))
      }
    }) as never,
    // The plugin's own retries are off: the upstream knows better when one is safe.
    retryDelay: () => null,
    onError: (reply, { error }) => { reply.send(toGatewayError(error)) }
  }

  scope.register(httpProxy, {
    upstream: upstream.origin,
    routes: [...route.paths],
    httpMethods: route.methods.flatMap(method => method === 'GET' ? ['GET', 'HEAD'] : [method]),
    undici: { request: upstream.request } as never,
    disableRequestLogging: true,
    retryMethods: [],
    cacheURLs: 1000,
    internalRewriteLocationHeader: false,
    config: { route: route.name, upstream: route.upstreamName, access: route.access, maxBody: route.maxBody, touch: route.touch, ...(route.envelope && { envelope: route.envelope }), ...(route.errorStatus && { errorStatus: route.errorStatus }) },
    replyOptions,
    handler: (request, reply) => {
      begin(request, reply)
      return reply.from(rewrite.toUpstream(request.raw.url ?? ''), replyOptions)
    }
  })

  /** From here on the client's leaving ends the upstream's work too. (Fastify's own signal fires when a POST's body was read.) */
  function begin (request: FastifyRequest, reply: FastifyReply): void {
    const exchange: Exchange = { timeoutMs: route.timeoutMs, collectBytes: shape === undefined ? collectBytes : maxShapedBytes, collectOnly: shape !== undefined, maxBodyBytes: route.maxBody, isHead: request.method === 'HEAD', startedAt: performance.now(), isGone: reply.raw.closed }
    request.exchange = exchange
    reply.raw.once('close', () => {
      if (reply.raw.writableFinished) return
      exchange.isGone = true
      exchange.abort?.()
    })
  }

  function upstreamFields (request: FastifyRequest): Record<PropertyKey, unknown> {
    const { raw } = request
    const fields: Record<PropertyKey, unknown> = toFields(raw.headers, {
      address: clientAddress(request),
      // Behind a trusted proxy it is a field's text, and may be anything.
      protocol: request.protocol === 'https' ? 'https' : 'http',
      host: hosts.length > 0 ? raw.headers.host : undefined,
      requestId: request.id,
      session: liveSession(request)
    }, request.body !== undefined && request.body !== null)
    fields[exchangeKey] = request.exchange
    return fields
  }

  function pass (request: FastifyRequest, reply: FastifyReply, { statusCode, headers, stream }: Answer): void {
    if (stream instanceof FailedBody) throw stream.error
    const body = stream instanceof CollectedBody ? stream.bytes : stream
    if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) redirect(reply, headers)
    if (request.method === 'HEAD' || statusCode === 204 || statusCode === 304) {
      if (shape !== undefined) reply.removeHeader('content-length').removeHeader('etag')
      return void reply.send(statusCode === 204 || statusCode === 304 ? undefined : '')
    }
    const isJson = /^application\/(?:[\w.+-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''))
    if (statusCode >= 400 && (!isJson || shape !== undefined)) {
      throw new GatewayError('upstream.error', { status: statusCode, ...messageOf(isJson && Buffer.isBuffer(body) ? body : undefined) })
    }
    if (shape === undefined) {
      // Events may be long in coming; that the stream is open is news of its own.
      if (body instanceof Readable && isEventStream(headers)) body.once('resume', () => reply.raw.flushHeaders())
      return void reply.send(body)
    }
    if (!Buffer.isBuffer(body)) throw new GatewayError('shape.too-large')
    for (const name of ['content-length', 'content-encoding', 'etag', 'last-modified', 'accept-ranges', 'content-md5', 'digest']) reply.removeHeader(name)
    reply.header('content-type', 'application/json; charset=utf-8')
    const shaped = shape(parseJson(body, headers), liveSession(request))
    if (shaped instanceof Promise) shaped.then(value => reply.send(writeJson(value))).catch((error: unknown) => reply.send(toGatewayError(error)))
    else reply.send(writeJson(shaped))
  }

  /** A redirect within the upstream is told as the public path; any other is not for an API, unless the route says so. */
  function redirect (reply: FastifyReply, headers: Answer['headers']): void {
    const location = typeof headers['location'] === 'string' ? headers['location'] : ''
    const base = upstream.origin + rewrite.toUpstream(reply.request.raw.url ?? '')
    if (location === '' || !URL.canParse(location, base)) throw new GatewayError('upstream.redirect')
    const target = new URL(location, base)
    if (target.origin === upstream.origin) {
      const path = rewrite.toPublic(target.pathname)
      if (path === undefined) throw new GatewayError('upstream.redirect')
      reply.header('location', path + target.search)
    } else if (route.redirects === 'pass' && (target.protocol === 'https:' || target.protocol === 'http:')) {
      reply.header('location', location)
    } else {
      throw new GatewayError('upstream.redirect')
    }
  }

  function messageOf (body: Buffer | undefined): { message?: string, extra?: Record<string, unknown> } {
    if (body === undefined) return {}
    try {
      const { message, msg, error, errorMessage } = JSON.parse(body.toString('utf8')) as Record<string, unknown>
      const found = [errorMessage, message, msg, error].find(candidate => typeof candidate === 'string' && candidate !== '')
      return typeof found === 'string' ? { message: found.slice(0, 500) } : {}
    } catch {
      return {}
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parseJson (body: Buffer, headers: Answer['headers']): unknown {
  const encoding = headers['content-encoding']
  try {
    if (encoding !== undefined && encoding !== 'identity') throw new Error(`the answer is encoded (${String(encoding)}) although it was asked not to be`)
    return JSON.parse(utf8.decode(body))
  } catch (cause) {
    // V8's message quotes the body, which is not for the log.
    throw new GatewayError('shape.not-json', { cause: cause instanceof SyntaxError ? new Error('the answer is no JSON') : cause })
  }
}

const isEventStream = (headers: Answer['headers']) => typeof headers['content-type'] === 'string' && headers['content-type'].startsWith('text/event-stream')

/** What is nested deeper than the stack can be read, but not written. */
function writeJson (value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new GatewayError('shape.not-json', { cause })
  }
}

function discard (stream: unknown): void {
  (stream as { destroy?: () => void }).destroy?.()
}
