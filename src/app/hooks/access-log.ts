/** The log line and the metrics of a request that ended. Never queries, cookies or bodies. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { toRouterPath } from '../../config/schema/public-path.ts'
import { fullRequestJson, isRemarkable, requestJson } from '../../observability/request-json.ts'
import { Trail, type TrailAlias } from '../../observability/trail.ts'
import { writeLines } from '../../services/logger.ts'
import type { Gateway } from '../gateway.ts'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import { stalled } from './sending.ts'

const ofRequests = [
  'address',
  'clientBody',
  'live',
  'ended',
  'hasByteHeaders',
  'hasKey',
  'openedId',
  'onResponseClose',
  'routeConfig',
  'trail'
] as const

export function addAccessLog(app: FastifyInstance): void {
  const { log, counters, metrics, running, tracer, failures } = app.gateway
  const aliases = aliasesOf(app.gateway)
  for (const name of ofRequests) app.decorateRequest(name, undefined as never)
  app.addHook('onRequest', function observeRequest(request, reply, done) {
    // Read now: a closed socket has no address. Fastify's onResponse does not run when the client
    // disconnects.
    const address = clientAddress(request)
    const trail = new Trail(request.id, request.method, request.originalUrl, address)
    const trace = tracer.begin(request.raw.headers)
    const routeConfig = request.routeOptions.config
    const endings = [running(reply.raw)]
    trail.trace = trace
    trail.route = routeConfig.route ?? unknownRoute
    trail.upstream = routeConfig.upstream
    if (aliases.size > 0) trail.alias = aliases.get(routeConfig.url)
    if (trace?.isLogged === true) request.log = request.log.child({ traceId: trace.traceId })
    request.trail = trail
    request.routeConfig = routeConfig
    request.onResponseClose = endings
    metrics.inFlight++
    // One listener for all endings: a listener costs more than most of them do.
    reply.raw.on('close', () => {
      metrics.inFlight--
      complete(trail, reply)
      failures.add(trail)
      if (trace?.isRecorded === true) {
        tracer.add({ trail, trace, scheme: request.protocol, template: routeConfig.url })
      }
      routeConfig.meter ??= counters.meter(trail.route, routeConfig.upstream)
      routeConfig.meter(trail)
      writeLine(log, trail)
      for (const end of endings) end()
    })
    done()
  })
}

function aliasesOf({ config, mount }: Gateway) {
  return new Map<string | undefined, TrailAlias>(
    Object.entries(config.routes.aliases).map(([path, target]) => [
      mount + toRouterPath(path),
      { path, target }
    ])
  )
}

/**
 * perf: 4 % of a signed-in request (bench, by turns); without it: log[level](facts, 'request').
 * Requests refused because of overload are no warnings: thousands share one.
 */
function writeLine(log: Logger, trail: Trail): void {
  const isFault = trail.outcome >= 500 && trail.code !== undefined && trail.code !== 'overloaded'
  const level = isFault ? 'warn' : 'info'
  if (!log.isLevelEnabled(level)) return
  const time = new Date().toISOString()
  const facts = isRemarkable(trail) ? fullRequestJson(trail) : requestJson(trail)
  const line = JSON.stringify({ level, time, ...facts, msg: 'request' })
  writeLines(log, `${line}\n`)
}

function complete(trail: Trail, reply: FastifyReply): void {
  // A 101 is written by another hand.
  const isAnswered = reply.raw.writableFinished || reply.statusCode === 101
  trail.ms = performance.now() - trail.startedAt
  trail.isCut = !isAnswered
  trail.status = isAnswered ? reply.statusCode : 499
  if (!isAnswered && stalled.has(reply.raw)) trail.code = 'request.timeout'
  // Of a stream without a length, and of HEAD, nothing is known.
  const length = trail.method === 'HEAD' ? undefined : reply.getHeader('content-length')
  const announced = length === undefined ? undefined : Number(length)
  trail.sent = isAnswered ? (trail.sent ?? announced) : undefined
}
