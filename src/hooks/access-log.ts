/** One line a request: route, status, durations, who. Never a query's secrets, a cookie or a body. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import { liveSession } from './session.ts'

export function addAccessLog (app: FastifyInstance): void {
  app.decorateRequest('exchange', undefined)
  app.decorateRequest('actor', undefined)
  app.decorateRequest('live', undefined)
  app.decorateRequest('ended', undefined)
  app.addHook('onRequest', function logWhenOver (request, reply, done) {
    // Asked now: a socket that is gone has no address. And not by Fastify's onResponse, which is silent when the client leaves.
    const address = clientAddress(request)
    reply.raw.once('close', () => logRequest(request, reply, address))
    done()
  })
}

function logRequest (request: FastifyRequest, reply: FastifyReply, address: string): void {
  const session = liveSession(request)
  const user = session?.identity.username ?? request.actor
  request.log.info({
    route: request.routeOptions.config.route ?? unknownRoute,
    method: request.method,
    path: pathOf(request.raw.url ?? ''),
    status: reply.raw.writableFinished ? reply.statusCode : 499,
    ms: round(reply.elapsedTime),
    ...(request.exchange?.firstByteMs !== undefined && { upstreamMs: round(request.exchange.firstByteMs) }),
    address,
    ...(user !== undefined && { user }),
    ...(session !== undefined && { session: session.id })
  }, 'request')
}

const round = (ms: number) => Math.round(ms * 100) / 100

/** Without the query, where tokens travel. */
function pathOf (target: string): string {
  const mark = target.indexOf('?')
  return (mark < 0 ? target : target.slice(0, mark)).slice(0, 512)
}
