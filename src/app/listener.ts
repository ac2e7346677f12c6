/** The public listener: before the app, so that a reload replaces that and keeps connections. */
import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse
} from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Config, ServerTls } from '../config/schema/config.ts'
import { type ErrorCode, errorKinds, GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { Trail } from '../observability/trail.ts'
import type { Services } from '../services/services.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { endSlowBodies, endStalledConnections, responsesOf, setUpgraded } from './connections.ts'
import type { GatewayServices } from './gateway.ts'
import { unknownRoute } from './hooks/context.ts'
import { canMeet, maxHeaders, maxHeaderSize } from './hooks/request-policy.ts'
import { endAfterOffer, isUpgrade, UpgradeResponse } from './hooks/upgrade.ts'

const headersTimeout = 10_000

export type Handler = (request: IncomingMessage, response: ServerResponse) => void
type Refuse = (socket: Socket, code: ErrorCode, request?: IncomingMessage) => void
type Records = Pick<Services, 'log' | 'metrics'> & Pick<GatewayServices, 'failures'>

export function createListener(
  { gateway, tls }: Pick<Config, 'gateway'> & { readonly tls?: ServerTls | undefined },
  handle: Handler,
  records: Records
): Server {
  const { log } = records
  const { server: settings } = gateway
  const refuse = createRefuse(gateway, records)
  const options = {
    // Long bodies have a minimum rate, short ones `endSlowBodies`.
    requestTimeout: 0,
    keepAliveTimeout: settings.keepAlive,
    // A request without a body has no stream to be read and ended.
    optimizeEmptyRequests: true,
    // A request without Host is refused by the request policy, in the envelope.
    requireHostHeader: false,
    shouldUpgradeCallback: isUpgrade
  }
  const server = adopt(createHttpServer(options, tls), err => {
    // Errors of listen() go to its caller. This is one of accept(), such as no free descriptor.
    if (server.listening) log.error({ err }, 'a connection could not be accepted')
  })
  server.on('request', (request, response) => {
    ignoreTypeOfNoBody(request)
    endAfterOffer(request, response)
    handle(request, adopt(response))
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, early: Buffer) => {
    if (!takeUpgrade(request, socket, early, handle)) refuse(socket, 'request.malformed', request)
  })
  refuseUnparsed(server, refuse, (reason, address) =>
    log.debug({ event: 'connection.refused', reason, address }, 'TLS failed')
  )
  endStalledConnections(server, settings.idleTimeout)
  endSlowBodies(server, settings.requestTimeout, socket => {
    if (socket.writable) refuse(socket, 'request.timeout')
    else socket.destroy()
  })
  // Node drops further headers silently, the request policy counts.
  server.maxHeadersCount = maxHeaders + 1
  return server
}

function createRefuse({ envelope }: Config['gateway'], { log, metrics, failures }: Records) {
  const { errorType, failure } = createEnvelope(envelope)
  const countError = metrics.counter('console_gateway_errors_total')
  return (...[socket, code, request]: Parameters<Refuse>): void => {
    const requestId = randomUUID()
    // The parser may have given up before the method.
    const { method = '', url = '' } = request ?? {}
    const { remoteAddress: address } = socket
    const { status } = errorKinds[code]
    const line = { event: 'connection.refused', requestId, code, status, address }
    const message = 'refused before it became a request'
    countError(code)
    // A connection that was never used is not worth a line.
    if (code === 'request.timeout') log.debug(line, message)
    else {
      log.info(line, message)
      const trail = new Trail(requestId, method, url, address ?? '')
      failures.add(Object.assign(trail, { route: unknownRoute, status, code }))
    }
    const headers = {
      'content-type': errorType,
      'x-request-id': requestId,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff'
    }
    sendRefusal(adopt(socket), code, headers, failure(new GatewayError(code), requestId))
  }
}

export function createHttpServer(more: ServerOptions, tls: ServerTls | undefined): Server {
  const options = {
    headersTimeout,
    connectionsCheckingInterval: 1000,
    maxHeaderSize,
    insecureHTTPParser: false,
    ...more
  }
  if (tls === undefined) return adopt(createServer(options))
  const secure = {
    ...secureContextOf(tls),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: headersTimeout
  }
  return adopt(createTlsServer({ ...options, ...secure })) as Server
}

function secureContextOf({ certificate, key }: ServerTls) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const
}

export function isTlsServer(server: unknown): server is TlsServer {
  return server instanceof TlsServer
}

export function setCertificate(server: Server, tls: ServerTls): void {
  if (isTlsServer(server)) server.setSecureContext(secureContextOf(tls))
}

/**
 * With `optimizeEmptyRequests` the stream of a request without a body never ends: Fastify would
 * wait for what a `Content-Type` promises, which some clients send with each DELETE.
 */
function ignoreTypeOfNoBody({ headers }: IncomingMessage): void {
  const hasBody = (headers['content-length'] ?? headers['transfer-encoding']) !== undefined
  if (!hasBody && headers['content-type'] !== undefined) delete headers['content-type']
}

const tlsFailure = /^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/

const codeOfParserError: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ['HPE_HEADER_OVERFLOW', 'request.headers'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request.timeout'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'request.too-large']
])

/** Refuses bytes that are no request, requests that come too slowly, and CONNECT. */
export function refuseUnparsed(
  server: Server,
  refuse: Refuse,
  onTlsFailure?: (code: string | undefined, address: string | undefined) => void
): void {
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const { code } = error
    // Nothing can be answered where the two sides have no common keys.
    const hasNoKeys = tlsFailure.test(code ?? '')
    if (hasNoKeys) onTlsFailure?.(code, socket.remoteAddress)
    if (hasNoKeys || code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    refuse(socket, codeOfParserError.get(code) ?? 'request.malformed')
  })
  server.on('connect', (request, socket) => refuse(socket as Socket, 'route.method', request))
  // The app answers also what expects more than it can meet.
  const pass: Handler = (request, response) => {
    if (canMeet(request)) response.writeContinue()
    server.emit('request', request, response)
  }
  server.on('checkExpectation', pass).on('checkContinue', pass)
}

/** Answers what is no request, and closes the connection: its framing is in doubt. */
export function sendRefusal(
  socket: Socket,
  code: ErrorCode,
  headers: Readonly<Record<string, string>>,
  body: object
): void {
  const open = responsesOf(socket)
  // Node does so itself, but not once an upgrade or CONNECT has come behind them.
  socket.once('close', () => {
    for (const response of open) response.destroy()
  })
  // A response has its socket from its turn on the connection until its last byte is written. The
  // refusal must not be taken for it.
  const current = open.find(
    response => response.socket === socket && (response.headersSent || response.req.complete)
  )
  if (current !== undefined && !current.writableEnded) return void socket.destroy()
  const text = JSON.stringify(body)
  const fields = Object.entries({
    ...headers,
    'connection': 'close',
    'content-length': Buffer.byteLength(text)
  }).map(([name, value]) => `${name}: ${value}`)
  const refusal = [`HTTP/1.1 ${errorKinds[code].status} Refused`, ...fields, '', text].join('\r\n')
  endUnread(socket, current === undefined ? refusal : '')
}

/**
 * Nothing is read any more, so no end or reset would be seen, and the descriptor never freed. The
 * client has 10 s to read the rest of the response, then one to close the connection.
 */
function endUnread(socket: Socket, last = ''): void {
  const destroySoon = (ms: number) => setTimeout(() => socket.destroy(), ms).unref()
  destroySoon(10_000)
  socket.end(last, () => destroySoon(1000))
}

/**
 * All hooks of the app decide on an upgrade; a route that takes none answers as usual.
 * @param early what came behind the request @returns false where it must be refused
 */
function takeUpgrade(request: IncomingMessage, socket: Socket, early: Buffer, handle: Handler) {
  // Behind a request that is still being answered, nothing could be answered in its turn.
  if (early.length > 0 || responsesOf(socket).length > 0) return false
  const response = adopt(new UpgradeResponse(request))
  try {
    response.assignSocket(socket)
  } catch {
    return false
  }
  adopt(socket)
  setUpgraded(socket)
  response.once('finish', () => {
    response.leave()
    endUnread(socket)
  })
  handle(request, response)
  return true
}
