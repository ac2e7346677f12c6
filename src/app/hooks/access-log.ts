/**
 * The log line (route, status, durations, user) and the metrics of a request when it has ended.
 * Queries, cookies and bodies are never logged.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema/config.ts'
import { toRouterPath } from '../../config/schema/public-path.ts'
import { mountOf } from '../../config/schema/resolved.ts'
import { fullRequestJson, isRemarkable, requestJson } from '../../observability/request-json.ts'
import { writeLines } from '../../services/logger.ts'
import { Trail, type TrailAlias } from '../../observability/trail.ts'
import { clientAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import { setSession } from './session.ts'

/** Members of requests: `context.ts`. */
const ofRequests = [
  'address',
  'actor',
  'clientBody',
  'errorCode',
  'ownErrorStatus',
  'live',
  'ended',
  'endedSession',
  'endedKey',
  'onResponseClose',
  'routeConfig',
  'trail'
] as const

export function addAccessLog(app: FastifyInstance): void {
  const { config, log, counters, rates, running, tracer, failures } = app.gateway
  const aliases = aliasesOf(config)
  for (const name of ofRequests) app.decorateRequest(name, undefined as never)
  app.addHook('onRequest', function observeRequest(request, reply, done) {
    // Read now: a closed socket has no address. Fastify's onResponse does not run when the client
    // disconnects.
    const address = clientAddress(request)
    request.trail = new Trail(request.id, request.method, request.raw.url ?? '', address)
    const trace = tracer.begin(request.raw.headers)
    request.trail.trace = trace
    const routeConfig = request.routeOptions.config
    request.routeConfig = routeConfig
    request.trail.route = routeConfig.route ?? unknownRoute
    request.trail.upstream = routeConfig.upstream
    if (aliases.size > 0) request.trail.alias = aliases.get(routeConfig.url)
    if (trace?.isLogged === true) request.log = request.log.child({ traceId: trace.traceId })
    rates.inFlight++
    const endings = [running.begin(reply.raw)]
    request.onResponseClose = endings
    // One listener for all endings: a listener costs more than most of them do.
    reply.raw.on('close', () => {
      rates.inFlight--
      complete(request, reply)
      const { trail } = request
      failures.add(trail)
      if (trace?.isRecorded === true) {
        tracer.add({ trail, trace, scheme: request.protocol, template: routeConfig.url })
      }
      routeConfig.meter ??= counters.meter(trail.route, routeConfig.upstream)
      routeConfig.meter.count(trail)
      writeLine(log, trail)
      for (const end of endings) end()
    })
    done()
  })
}

/** By their paths, as the router has them. */
type Aliases = ReadonlyMap<string | undefined, TrailAlias>

function aliasesOf(config: Config): Aliases {
  const mount = mountOf(config)
  const aliases = Object.entries(config.routes.aliases)
  return new Map(aliases.map(([path, target]) => [mount + toRouterPath(path), { path, target }]))
}

/**
 * perf: a line that pino makes takes 2 µs more.
 * Thousands that are refused because of overload are no warnings: they share one.
 */
function writeLine(log: Logger, trail: Trail): void {
  const isFault = trail.status >= 500 && trail.code !== undefined && trail.code !== 'overloaded'
  const level = isFault ? 'warn' : 'info'
  if (!log.isLevelEnabled(level)) return
  const time = new Date().toISOString()
  const facts = isRemarkable(trail) ? fullRequestJson(trail) : requestJson(trail)
  const line = JSON.stringify({ level, time, ...facts, msg: 'request' })
  writeLines(log, `${line}\n`)
}

/** Writes into the trail whose request it is. */
function setUser(request: FastifyRequest): void {
  const { trail, endedSession, actor } = request
  const session = request.live?.session
  if (session !== undefined) return setSession(request, session)
  trail.user ??= endedSession === undefined ? actor : undefined
  trail.session ??= endedSession
  trail.isSessionOver = endedSession !== undefined
}

/** Writes into the trail what is known at the end of a response. */
function complete(request: FastifyRequest, reply: FastifyReply): void {
  const { trail } = request
  // A 101 is written by another hand.
  const isAnswered = reply.raw.writableFinished || reply.statusCode === 101
  trail.ms = performance.now() - trail.startedAt
  trail.isCut = !isAnswered
  trail.status = isAnswered ? reply.statusCode : 499
  if (isAnswered) trail.code = request.errorCode
  trail.sent = isAnswered ? (trail.sent ?? lengthOf(reply)) : undefined
  setUser(request)
}

/** The announced length of the body: of a stream without one, and of HEAD, nothing is known. */
function lengthOf(reply: FastifyReply): number | undefined {
  const length = reply.getHeader('content-length')
  return length === undefined || reply.request.method === 'HEAD' ? undefined : Number(length)
}
