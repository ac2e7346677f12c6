/** CORS for the pages of other origins that config lists; without any, no hook is added. */
import cors from '@fastify/cors'
import type { FastifyInstance, FastifyReply } from 'fastify'

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
  await app.register(cors, {
    origin: [...origins],
    credentials: true,
    exposedHeaders: [...exposedHeaders, ...exposeHeaders],
    // With it the plugin answers every OPTIONS. So OPTIONS that is no preflight passes to the
    // plugin's own route, which hands it on as one that no route takes.
    preflight: false
  })
}

/** The headers of `addCors`, of a response that no hook runs for. */
export function setCorsHeaders(reply: FastifyReply): void {
  const { origin } = reply.request.headers
  const { origins } = reply.server.gateway.config.gateway.server
  if (origins.length === 0) return
  reply.header('vary', 'Origin')
  if (origin === undefined || !origins.includes(origin)) return
  reply.header('access-control-allow-origin', origin)
  reply.header('access-control-allow-credentials', 'true')
}

export function answerPreflights(app: FastifyInstance): void {
  const { origins } = app.gateway.config.gateway.server
  if (origins.length === 0) return
  const headers = {
    'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
    'access-control-max-age': '600',
    // Safari waits for a body without it.
    'content-length': '0'
  }
  app.addHook('onRequest', function answerPreflight(request, reply, done) {
    if (request.method !== 'OPTIONS') return done()
    const { origin = '', 'access-control-request-headers': asked } = request.headers
    // https://fetch.spec.whatwg.org/#cors-preflight-request
    if (origin === '' || !request.headers['access-control-request-method']) return done()
    // `*` means nothing where credentials are sent.
    if (asked !== undefined && origins.includes(origin)) {
      reply.header('access-control-allow-headers', asked)
    }
    reply.code(204).headers(headers).send()
  })
}
