/** A route that goes to an upstream: compiled once when the app is built, run per request. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { forwardedForOf } from '../hooks/forwarded-for.ts'
import type { Access } from '../hooks/context.ts'
import { abort, CollectedBody, type Exchange, isEventStream } from '../../proxy/response.ts'
import { answeredError, isJson } from '../../proxy/failures.ts'
import { answerFields, joinedVary, requestFields } from '../../proxy/headers.ts'
import { createRewrite } from '../../proxy/path.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import { exchangeKey, FailedBody, type Upstream } from '../../proxy/upstream.ts'
import { type GatheringOptions, startGathering } from './pending-parts.ts'
import { sendBody } from './send-body.ts'
import { describeShaped, sendAnswer, sendOnceGathered, type Shaping } from './shaped.ts'

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
  /** Without it, bodies pass byte for byte. */
  readonly shaping?: Shaping
  /** Sees JSON that passes byte for byte, where it was small enough to be collected. */
  readonly observe?: (
    bytes: Buffer,
    headers: Readonly<Record<string, string | string[] | undefined>>
  ) => void
  readonly envelope?: Envelope
  readonly errorStatus?: 'own' | 'ok'
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  readonly passRefusedHeaders: readonly string[]
  readonly setCookies: readonly string[]
  readonly redirects: 'refuse' | 'pass'
}

export interface ProxiedOptions extends GatheringOptions {
  readonly identity: GatewayConfig['identity']
  /** What stands before every public path. */
  readonly mount: string
}

/** A reader that stands still is first ended by the upstream's own clock, which says so in the log. */
const afterUpstreamMs = 1000

/** Bodies up to this size are collected and sent in one write; streams cost more than they save below it. */
const collectBytes = 64 * 1024

interface Answer {
  readonly statusCode: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly stream: unknown
}

/** What a route does with its requests, to be put into the plugin's routes. */
export type Compiled = Pick<RouteOptions, 'method' | 'config' | 'preHandler' | 'handler'>

export function compileProxied(route: ProxiedRoute, options: ProxiedOptions): Compiled {
  const { identity, mount, forwardedHost } = options
  const { upstream, shaping } = route
  const rewrite = createRewrite(
    route.paths.map(path => mount + path),
    route.upstreamPath,
    upstream.base
  )
  const credential = credentialOf(upstream.config.credential)
  const toFields = requestFields({
    identity,
    tellIdentity: upstream.config.identity,
    credential: credential.as,
    credentialFrom: credential.from,
    passHeaders: upstream.config.passHeaders,
    passRefusedHeaders: route.passRefusedHeaders,
    passAuthorization: route.passAuthorization,
    passCookies: route.passCookies,
    shaped: shaping !== undefined
  })
  const toAnswerFields = answerFields({
    setCookies: route.setCookies,
    mayCache: route.access === 'public' && shaping?.parts === undefined,
    shaped: shaping !== undefined
  })

  const replyOptions: NonNullable<Parameters<FastifyReply['from']>[1]> = {
    rewriteRequestHeaders: request =>
      ({
        ...upstreamFields(request as FastifyRequest),
        [exchangeKey]: (request as FastifyRequest).exchange
      }) as never,
    rewriteHeaders: fields => toAnswerFields(fields as Answer['headers']) as never,
    onResponse: ((request: FastifyRequest, reply: FastifyReply, answer: Answer) => {
      // A part of it has failed already.
      if (reply.sent) return discard(answer.stream)
      try {
        pass(request, reply, answer)
      } catch (error) {
        discard(answer.stream)
        reply.send(toGatewayError(error))
      }
    }) as never,
    // The plugin's own retries are off: the upstream knows better when one is safe.
    retryDelay: () => null,
    onError: (reply, { error }) => {
      reply.send(toGatewayError(error))
    }
  }

  return {
    method: route.methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
    config: {
      ...(credential.from !== undefined && { credentialFrom: credential.from }),
      route: route.name,
      upstream: route.upstreamName,
      access: route.access,
      maxBody: route.maxBody,
      touch: route.touch,
      stallMs: upstream.config.idleTimeout + afterUpstreamMs,
      ...(route.envelope && { envelope: route.envelope }),
      ...(route.errorStatus && { errorStatus: route.errorStatus })
    },
    preHandler: sendDirectly,
    handler: (request, reply) => {
      begin(request, reply)
      return reply.from(rewrite.toUpstream(request.raw.url ?? ''), replyOptions)
    }
  }

  /**
   * The short way of a request without a body: the plugin's own copies the fields twice and parses three addresses,
   * which costs more than all our hooks. What has a body goes on to it.
   */
  function sendDirectly(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    if (request.body !== undefined && request.body !== null) return done()
    const exchange = begin(request, reply)
    const target = request.raw.url ?? ''
    const mark = target.indexOf('?')
    const path = rewrite.toUpstream(target) + (mark < 0 ? '' : target.slice(mark))
    upstream.ask(
      { method: request.method, path, headers: upstreamFields(request) as Record<string, string> },
      exchange,
      (error, answer) => {
        if (exchange.isGone) return answer?.body.destroy()
        try {
          if (answer === undefined) throw error
          reply.code(answer.status)
          if (isBodyPending(request.raw)) reply.header('connection', 'close')
          pass(
            request,
            reply,
            { statusCode: answer.status, headers: answer.headers, stream: answer.body },
            toAnswerFields(answer.headers)
          )
        } catch (failure) {
          answer?.body.destroy()
          reply.send(toGatewayError(failure))
        }
      }
    )
  }

  /** From here on the client's leaving ends the upstream's work too. (Fastify's own signal fires when a POST's body was read.) */
  function begin(request: FastifyRequest, reply: FastifyReply): Exchange {
    const exchange: Exchange = {
      timeoutMs: route.timeoutMs,
      collectBytes: shaping?.maxShaped ?? collectBytes,
      collectOnly: shaping !== undefined,
      maxBodyBytes: route.maxBody,
      isHead: request.method === 'HEAD',
      startedAt: performance.now(),
      isGone: reply.raw.closed
    }
    request.exchange = exchange
    if (shaping?.parts !== undefined && request.method === 'GET') {
      request.gathering = startGathering(request, reply, route.name, shaping.parts, options)
      // Without a required part nobody waits for the rest.
      request.gathering.catch((error: unknown) => {
        if (exchange.isGone || reply.sent) return
        exchange.isGone = true
        abort(exchange)
        reply.send(toGatewayError(error))
      })
    }
    request.onResponseClose.push(() => {
      if (reply.raw.writableFinished) return
      exchange.isGone = true
      abort(exchange)
    })
    return exchange
  }

  function upstreamFields(request: FastifyRequest): ReturnType<typeof toFields> {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    return toFields(
      request.raw.headers,
      forwardedForOf(request, forwardedHost),
      request.body !== undefined && request.body !== null,
      isRead
    )
  }

  /** @param fields of the answer, where the plugin has not put them into the reply */
  function pass(
    request: FastifyRequest,
    reply: FastifyReply,
    { statusCode, headers, stream }: Answer,
    fields?: ReturnType<typeof toAnswerFields>
  ): void {
    if (stream instanceof FailedBody) throw stream.error
    const bytes = stream instanceof CollectedBody ? stream.bytes : undefined
    // Most answers are sent with them as they are: to put them into the reply one by one costs as much as to send them.
    const isPlain =
      statusCode === 200 &&
      shaping === undefined &&
      bytes !== undefined &&
      request.method !== 'HEAD'
    if (fields !== undefined && !isPlain) reply.headers(fields)
    if (headers['vary'] !== undefined) addVary(reply, headers['vary'])
    if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) redirect(reply, headers)
    if (statusCode >= 400 && (shaping !== undefined || !isJson(headers))) {
      throw answeredError(statusCode, headers, bytes)
    }
    if (statusCode === 204 || statusCode === 205 || statusCode === 304) {
      // No condition of the client's went on, so this answers nobody's.
      if (statusCode === 304 && shaping !== undefined)
        throw new GatewayError('upstream.invalid', {
          cause: new Error('304, although no condition was sent')
        })
      if (request.gathering !== undefined && shaping !== undefined) {
        reply.code(200)
        return sendOnceGathered(request, reply, null, shaping, request.gathering)
      }
      return void (statusCode === 304 ? reply : reply.removeHeader('content-length')).send()
    }
    if (statusCode >= 300 && statusCode < 400 && shaping !== undefined) {
      discard(stream)
      return void reply.removeHeader('content-type').send()
    }
    if (request.method === 'HEAD') {
      if (shaping !== undefined) describeShaped(reply)
      return void reply.send()
    }
    if (shaping !== undefined)
      return sendAnswer(request, reply, { statusCode, headers, stream }, shaping)
    if (bytes !== undefined && isJson(headers) && statusCode < 300 && statusCode !== 206)
      route.observe?.(bytes, headers)
    // Events may be long in coming; that the stream is open is news of its own.
    if (stream instanceof Readable && isEventStream(headers))
      stream.once('resume', () => reply.raw.flushHeaders())
    if (bytes === undefined) reply.send(stream)
    else sendBody(reply, bytes, fields)
  }

  /** CORS has said its own already. What is shaped was asked for in one coding. */
  function addVary(reply: FastifyReply, given: string | string[]): void {
    const names = joinedVary(
      reply.getHeader('vary') as string | string[] | undefined,
      given,
      shaping === undefined ? undefined : 'accept-encoding'
    )
    if (names !== undefined) reply.header('vary', names)
  }

  /** A redirect within the upstream is told as the public path; any other is not for an API, unless the route says so. */
  function redirect(reply: FastifyReply, headers: Answer['headers']): void {
    const location = typeof headers['location'] === 'string' ? headers['location'] : ''
    const base = upstream.origin + rewrite.toUpstream(reply.request.raw.url ?? '')
    if (location === '' || !URL.canParse(location, base))
      throw new GatewayError('upstream.redirect')
    const target = new URL(location, base)
    if (target.origin === upstream.origin) {
      const path = rewrite.toPublic(target.pathname)
      if (path === undefined) throw new GatewayError('upstream.redirect')
      reply.header('location', path + target.search)
    } else if (
      route.redirects === 'pass' &&
      (target.protocol === 'https:' || target.protocol === 'http:')
    ) {
      reply.header('location', location)
    } else {
      throw new GatewayError('upstream.redirect')
    }
  }
}

function discard(stream: unknown): void {
  ;(stream as { destroy?: () => void }).destroy?.()
}
