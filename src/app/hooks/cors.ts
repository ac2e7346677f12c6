/** CORS for the pages of other origins that config lists; without any, no hook is added. */
import cors from '@fastify/cors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

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
