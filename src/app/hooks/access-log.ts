/**
 * The log line (route, status, durations, user) and the metrics of a request when it has ended.
 * Queries, cookies and bodies are never logged.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import type { RequestMetrics } from './metrics.ts'
import { liveSession } from './session.ts'

/** Registers requests and WebSockets while they run. */
export interface Running {
  /**
   * @param member is destroyed where it may run no longer
   * @returns what to call when it is over
   */
  readonly begin: (member: { readonly destroy: () => unknown }) => () => void
}

export function addAccessLog(
  app: FastifyInstance,
  log: Logger,
  { inFlight, meter }: RequestMetrics,
  running: Running
): void {
  app.decorateRequest('address', undefined)
  app.decorateRequest('exchange', undefined)
  app.decorateRequest('actor', undefined)
  app.decorateRequest('errorCode', undefined)
  app.decorateRequest('live', undefined)
  app.decorateRequest('ended', undefined)
  app.decorateRequest('endedSession', undefined)
  app.decorateRequest('onResponseClose', null as never)
  app.addHook('onRequest', function observeRequest(request, reply, done) {
    // Read now: a closed socket has no address. Fastify's onResponse does not run when the client
    // disconnects.
    const address = clientAddress(request)
    inFlight.inc()
    const endings = [running.begin(reply.raw)]
    request.onResponseClose = endings
    // One listener for all endings: a listener costs more than most of them do.
    reply.raw.on('close', () => {
      inFlight.inc(-1)
      keep(request, reply, address)
      for (const end of endings) end()
    })
    done()
  })

  function keep(request: FastifyRequest, reply: FastifyReply, address: string): void {
    const { config } = request.routeOptions
    const isAnswered = reply.raw.writableFinished
    const ms = reply.elapsedTime
    const upstreamMs = request.exchange?.firstByteMs
    config.meter ??= meter(config.route ?? unknownRoute, config.upstream)
    config.meter.count(request.method, isAnswered ? reply.statusCode : undefined, ms, upstreamMs)
    if (!log.isLevelEnabled('info')) return
    const session = liveSession(request)
    const { endedSession, actor } = request
    // A member without a value is not written.
    log.info(
      {
        requestId: request.id,
        route: config.route ?? unknownRoute,
        method: request.method,
        path: pathOf(request.raw.url ?? ''),
        status: isAnswered ? reply.statusCode : 499,
        ms: toHundredths(ms),
        code: isAnswered ? request.errorCode : request.exchange?.cutCode,
        upstreamMs: upstreamMs === undefined ? undefined : toHundredths(upstreamMs),
        address,
        user: session?.identity.username ?? (endedSession === undefined ? actor : undefined),
        userId: session?.identity.id,
        session: session?.id,
        endedSession: session === undefined ? endedSession : undefined
      },
      'request'
    )
  }
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}

/** Without the query, which may hold tokens. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  return (mark < 0 ? target : target.slice(0, mark)).slice(0, 512)
}
