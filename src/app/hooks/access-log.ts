/** What is kept of a request that is over: one line (route, status, durations, who) and its counts. Never a query's secrets, a cookie or a body. */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { lineWriter } from '../../observability/log.ts'
import type { Session } from '../../session/record.ts'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import type { RequestMetrics } from './metrics.ts'
import { liveSession } from './session.ts'

/** Gets to know each request while it runs. */
export interface Running {
  /** @returns what to call when it is over */
  readonly begin: (answer: ServerResponse) => () => void
}

export function addAccessLog(
  app: FastifyInstance,
  log: Logger,
  { inFlight, meter }: RequestMetrics,
  running: Running
): void {
  const writeLine = lineWriter(log, 'request')
  app.decorateRequest('address', undefined)
  app.decorateRequest('exchange', undefined)
  app.decorateRequest('actor', undefined)
  app.decorateRequest('errorCode', undefined)
  app.decorateRequest('live', undefined)
  app.decorateRequest('ended', undefined)
  app.decorateRequest('endedSession', undefined)
  app.decorateRequest('onResponseClose', null as never)
  app.addHook('onRequest', function observeRequest(request, reply, done) {
    // Asked now: a socket that is gone has no address. And not by Fastify's onResponse, which is silent when the client leaves.
    const address = clientAddress(request)
    inFlight.inc()
    const last = [running.begin(reply.raw)]
    request.onResponseClose = last
    // One listener for all: each costs more than what most of them do.
    reply.raw.on('close', () => {
      inFlight.inc(-1)
      keep(request, reply, address)
      for (const end of last) end()
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
    const session = liveSession(request)
    config.logged ??= JSON.stringify(config.route ?? unknownRoute)
    // What nobody outside chose, or was held to letters and digits, needs no escapes.
    let fields = `"requestId":"${request.id}","route":${config.logged},"method":"${request.method}","path":${JSON.stringify(pathOf(request.raw.url ?? ''))},"status":${isAnswered ? reply.statusCode : 499},"ms":${hundredths(ms)}`
    if (isAnswered && request.errorCode !== undefined) fields += `,"code":"${request.errorCode}"`
    if (upstreamMs !== undefined) fields += `,"upstreamMs":${hundredths(upstreamMs)}`
    fields += `,"address":${JSON.stringify(address)}`
    if (session !== undefined) fields += whoIn(session)
    else if (request.endedSession !== undefined) {
      fields += `,"endedSession":"${request.endedSession}"`
    } else if (request.actor !== undefined) fields += `,"user":${JSON.stringify(request.actor)}`
    writeLine(fields)
  }
}

/** Written once for each session that this process remembers. */
const known = new WeakMap<Session, string>()

function whoIn(session: Session): string {
  let text = known.get(session)
  if (text === undefined) {
    const {
      identity: { id, username },
      id: name
    } = session
    text = `,"user":${JSON.stringify(username)},"userId":${JSON.stringify(id)},"session":"${name}"`
    known.set(session, text)
  }
  return text
}

/** As whole numbers are written, which costs a tenth of a broken one. */
function hundredths(ms: number): string {
  const all = Math.round(ms * 100)
  const rest = all % 100
  return `${(all - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`
}

/** Without the query, where tokens travel. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  return (mark < 0 ? target : target.slice(0, mark)).slice(0, 512)
}
