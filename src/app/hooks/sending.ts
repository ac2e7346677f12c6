/** Completes each response: standard headers, compression, one write for a small body; its end. */
import { isAscii } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { constants } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import cors from '@fastify/cors'
import { GatewayError } from '../../errors/errors.ts'
import { isRedirected } from './request-policy.ts'

const oneWriteBytes = 16 * 1024

const transportHeader = 'strict-transport-security'

export function addSending(app: FastifyInstance): void {
  app.addHook('onSend', function completeResponse(request, reply, payload, done) {
    setStandardHeaders(reply)
    // With a text Node writes the headers as UTF-8 too, which makes two bytes of one.
    if (request.hasByteHeaders === true) {
      return done(null, typeof payload === 'string' ? Buffer.from(payload) : payload)
    }
    const isSmall = Buffer.isBuffer(payload) && payload.length <= oneWriteBytes
    // perf: Node sends a text together with the headers in one write, and bytes in a second one.
    if (isSmall && isAscii(payload)) return done(null, payload.toString('latin1'))
    done()
  })
}

/** The headers of every response, unless its route sets them itself. */
const standardHeaders = Object.entries({
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'"
})

function setStandardHeaders(reply: FastifyReply): void {
  for (const [name, value] of standardHeaders) if (!reply.hasHeader(name)) reply.header(name, value)
  const { secure } = reply.server.gateway.cookie.options
  if (secure && !reply.hasHeader(transportHeader) && !isRedirected(reply.request)) {
    reply.header(transportHeader, 'max-age=31536000')
  }
  reply.header('x-request-id', reply.request.id)
}

/** As fast as gzip, and smaller; the default takes ten times as long. */
const quality = 4

export async function addCompression(app: FastifyInstance): Promise<void> {
  if (!app.gateway.config.gateway.server.compress) return
  // Imported only where config asks for it.
  await app.register(import('@fastify/compress'), {
    encodings: ['br', 'gzip'],
    threshold: 1024,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: quality } },
    // Events have to be sent at once.
    customTypes: /^text\/(?!event-stream)|[/+](?:json|xml|javascript|wasm)(?:;|$)/
  })
}

/** Responses whose client took nothing for too long. */
export const stalled = new WeakSet<ServerResponse>()

/** Aborted when the client leaves; Fastify's own is as soon as a body is read. */
export function leavingOf(response: ServerResponse): AbortController {
  const end = new AbortController()
  const leave = () => {
    if (response.writableFinished) return
    end.abort(new GatewayError('request.malformed', { cause: 'the client left' }))
  }
  if (response.closed) leave()
  else response.once('close', leave)
  return end
}

const exposedHeaders = [
  'x-request-id',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'x-session-idle-in',
  'x-session-absolute-in',
  'content-disposition',
  'content-range',
  'etag',
  'x-total-count'
]

/** Before all that may refuse: the page is to read the refusal too. */
export async function addCors(app: FastifyInstance): Promise<void> {
  const { origins, exposeHeaders } = app.gateway.config.gateway.server
  if (origins.length === 0) return
  const options = {
    origin: [...origins],
    credentials: true,
    exposedHeaders: [...exposedHeaders, ...exposeHeaders],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    maxAge: 600
  }
  await app.register(cors, {
    delegator: ({ headers }: FastifyRequest, done: (error: null, options: object) => void) => {
      // The plugin would answer every other OPTIONS, too.
      const preflight = Boolean(headers.origin && headers['access-control-request-method'])
      done(null, { ...options, preflight })
    }
  })
}
