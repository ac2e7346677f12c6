/** One listening server and the app behind it: load → build → listen → drain. */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { buildApp } from './app.ts'
import { ConfigError, describeFault } from './config/faults.ts'
import type { Config } from './config/load.ts'
import { openApi } from './description/openapi.ts'
import { createOps, type Readiness } from './endpoints/ops.ts'
import { addOpsSessions } from './endpoints/ops-sessions.ts'
import { exampleFaults } from './examples.ts'
import { createEnvelope } from './envelope.ts'
import { type ErrorCode, GatewayError } from './errors.ts'
import { countedErrors } from './hooks/errors.ts'
import { createLogger, createServices, type Services } from './services.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

export interface Gateway {
  /** Where the console reaches it; the port is the real one, also where config says 0. */
  readonly url: string
  readonly opsUrl: string
  /** Not ready, then no new requests, then an end for those in flight. Takes `drain.notice` and at most `drain.grace`. */
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
}

/** @throws when a listener cannot be had; what was opened by then is closed again */
export async function startGateway (config: Config, log = createLogger(config.gateway.log)): Promise<Gateway> {
  const { gateway: { server: settings, ops: opsSettings, drain } } = config
  const failing = Object.keys(config.routes.examples).length > 0 ? await exampleFaults(config) : []
  if (failing.length > 0) throw new ConfigError(failing)
  for (const warning of config.warnings) log.warn({ config: warning.path }, describeFault(warning))
  const services = createServices(config, log)
  services.metrics.gauge('console_gateway_info', 'Always 1; says what runs.', ['version', 'node']).with(version, process.version).set(1)
  services.metrics.gauge('console_gateway_generation', 'The number of the running generation: 1 at start.').with().set(1)
  const state = { stopping: false }
  const opened: Array<() => Promise<unknown>> = [() => services.close()]
  try {
    const app = await buildApp(config, services)
    opened.push(() => app.close())
    const server = createOuterServer(config, app, services)
    opened.push(() => closeServer(server))
    const ops = createOps({ readiness: () => readiness(services, state.stopping, opsSettings.strictRedis), metrics: services.metrics, openApi: () => openApi(config) })
    addOpsSessions(ops, { sessions: services.sessions, log })
    opened.push(() => ops.close())
    const opsAddress = splitAddress(opsSettings.listen)
    await ops.listen(opsAddress)
    const opsUrl = urlOf(opsAddress.host, ops.server)
    const url = await listen(server, splitAddress(settings.listen))
    log.info({ url, ops: opsUrl }, `listening on ${url}, for operators on ${opsUrl}`)
    const stop = once(async ({ noticeMs = drain.notice }: { readonly noticeMs?: number } = {}) => {
      state.stopping = true
      log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
      await wait(noticeMs)
      const closed = closeServer(server)
      const inTime = await Promise.race([closed.then(() => true), wait(drain.grace, false, { ref: false })])
      if (!inTime) log.warn(`requests were still running after ${drain.grace} ms: cut`)
      server.closeAllConnections()
      await closed
      await app.close()
      await ops.close()
      await services.close()
      log.info('stopped')
    })
    return { url, opsUrl, stop }
  } catch (error) {
    for (const close of opened.toReversed()) await close().catch(() => {})
    throw error
  }
}

/** Not Fastify's own server: the app behind it can then be replaced while connections live on. */
function createOuterServer (config: Config, app: FastifyInstance, { log, metrics }: Services): Server {
  const { server: settings, envelope } = config.gateway
  const dialect = createEnvelope(envelope)
  const body = (code: ErrorCode) => JSON.stringify(dialect.failure(new GatewayError(code), ''))
  const errors = countedErrors(metrics)
  const refuse = (socket: Socket, code: ErrorCode) => {
    const { status } = new GatewayError(code)
    // Connections that were opened and never used are no one's attempt.
    log[code === 'request.timeout' ? 'debug' : 'info']({ event: 'connection.refused', code, status, address: socket.remoteAddress }, 'refused before it became a request')
    errors.with(code).inc()
    end(socket, status, body(code))
  }
  const server = createServer({
    headersTimeout: settings.headersTimeout,
    requestTimeout: Math.max(settings.requestTimeout, settings.headersTimeout),
    keepAliveTimeout: settings.keepAlive,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
    insecureHTTPParser: false,
    // A request without Host is refused by the request policy, in the envelope.
    requireHostHeader: false
  }, (request, response) => app.routing(request, response))
  // One more than is allowed: Node cuts silently what is beyond.
  server.maxHeadersCount = config.limits.sizes.headerCount + 1
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    errors.with('request.expectation').inc()
    const told = body('request.expectation')
    response.writeHead(417, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', connection: 'close', 'content-length': Buffer.byteLength(told) }).end(told)
  })
  server.on('upgrade', (_request: IncomingMessage, socket: Socket) => { refuse(socket, 'request.malformed') })
  server.on('connect', (_request: IncomingMessage, socket: Socket) => { refuse(socket, 'route.method') })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const code: ErrorCode = error.code === 'HPE_HEADER_OVERFLOW' ? 'request.headers' : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request.timeout' : error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW' ? 'request.too-large' : 'request.malformed'
    refuse(socket, code)
  })
  return server
}

/** For what never became a request: framing is in doubt, so the connection ends. */
function end (socket: Socket, status: number, body: string): void {
  socket.on('error', () => {})
  const answer = answerUnderWay(socket)
  // An earlier request's answer: this refusal must not be taken for it, nor stand within it.
  if (answer !== undefined && (answer.headersSent || answer.req.complete)) return void (answer.writableEnded ? socket.end() : socket.destroy())
  socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-type: application/json; charset=utf-8\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  setTimeout(() => socket.destroy(), 1000).unref()
}

/** Whose turn it is on a connection; Node tells it nowhere else. */
function answerUnderWay (socket: Socket): ServerResponse | undefined {
  const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse | null }
  return answer ?? undefined
}

function readiness (services: Services, stopping: boolean, strictRedis: boolean): Readiness {
  const redis = services.redis()
  if (redis.kind === 'embedded') return { ready: !stopping, parts: { ...(stopping && { gateway: 'stopping' }), sessions: 'in this process' } }
  const waits = strictRedis ? !redis.up : !redis.everUp
  return { ready: !stopping && !waits, parts: { ...(stopping && { gateway: 'stopping' }), redis: redis.up ? 'up' : redis.everUp ? 'away: what needs a session answers 503' : 'not reached yet' } }
}

function splitAddress (address: string): { host: string, port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

async function listen (server: Server, { host, port }: { host: string, port: number }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  return urlOf(host, server)
}

/** With the real port, also where config says 0. */
function urlOf (host: string, server: { address: Server['address'] }): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function closeServer (server: Server): Promise<void> {
  await new Promise<void>(resolve => {
    if (!server.listening) return resolve()
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

function once<A extends unknown[], T> (work: (...given: A) => Promise<T>): (...given: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...given) => running ??= work(...given)
}
