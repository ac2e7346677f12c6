/**
 * The public listener: a Node server in front of the app, so that a reload replaces the app and
 * keeps connections. It answers requests that Node's parser refuses.
 */
import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse
} from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Config, ServerTls } from '../config/schema/config.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { countedErrors } from './hooks/errors.ts'
import { recordUnrouted, type UnroutedRecords } from './hooks/unrouted.ts'
import { adopt } from '../observability/emitters.ts'
import type { Services } from '../services/services.ts'
import { endStalledConnections } from './stalled-connections.ts'
import type { Upgrades } from './upgrades.ts'

interface Handler {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** The response that a connection waits for, of those that have begun. */
  readonly responseOn: (socket: Socket) => ServerResponse | undefined
}

type Records = UnroutedRecords & Pick<Services, 'metrics'>

/** Nothing can be answered: the two sides have no common keys. */
const tlsFailure = /^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/

const codeOfParserError: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ['HPE_HEADER_OVERFLOW', 'request.headers'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request.timeout'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'request.too-large']
])

export function createListener(
  { gateway, serverTls }: Pick<Config, 'gateway' | 'serverTls'>,
  handler: Handler,
  records: Records,
  upgrades?: Upgrades
): Server {
  const { log } = records
  const { server: settings } = gateway
  const { refuse, refuseExpectation } = createRefusals(gateway, handler, records)
  const server = createHttpServer(settings, serverTls, {
    onRequest: (request, response) => {
      ignoreTypeOfNoBody(request)
      handler.handle(request, adopt(response))
    },
    onError: err => {
      // Errors of listen() go to its caller. This is one of accept(), such as no free descriptor.
      if (server.listening) log.error({ err }, 'a connection could not be accepted')
    }
  })
  refuseExpectations(server, refuseExpectation)
  server.on('upgrade', (request: IncomingMessage, socket: Socket, early: Buffer) => {
    // Behind a request that is still being answered, nothing could be answered in its turn.
    const isPipelined = handler.responseOn(socket) !== undefined
    if (isPipelined || upgrades?.take(request, socket, early) !== true) {
      refuse(socket, 'request.malformed', request)
    }
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    refuse(socket, 'route.method', request)
  })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    if (tlsFailure.test(error.code ?? '')) {
      const fields = {
        event: 'connection.refused',
        reason: error.code,
        address: socket.remoteAddress
      }
      log.debug(fields, 'TLS failed')
      return void socket.destroy()
    }
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    refuse(socket, codeOfParserError.get(error.code) ?? 'request.malformed')
  })
  endStalledConnections(server, settings.idleTimeout)
  // One more than config allows: Node drops further headers silently, the request policy counts.
  server.maxHeadersCount = 1001
  return server
}

/**
 * Refuses all that a client may expect but `100-continue`, which Node finds also among others
 * (RFC 9110 §10.1.1).
 */
export function refuseExpectations(server: Server, refuse: RequestListener): void {
  server.on('checkExpectation', refuse)
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers.expect?.toLowerCase() !== '100-continue') return refuse(request, response)
    response.writeContinue()
    server.emit('request', request, response)
  })
}

interface Refusal {
  readonly status: number
  readonly requestId: string
  readonly type: string
  readonly text: string
}

/** Refuses what reaches no app. */
function createRefusals(
  { envelope }: Config['gateway'],
  handler: Pick<Handler, 'responseOn'>,
  records: Records
) {
  const dialect = createEnvelope(envelope)
  const refusalOf = (code: ErrorCode): Refusal => {
    const error = new GatewayError(code)
    const requestId = randomUUID()
    return {
      status: error.status,
      requestId,
      type: dialect.errorType,
      text: JSON.stringify(dialect.failure(error, requestId))
    }
  }
  const errors = countedErrors(records.metrics)
  const refuse = (socket: Socket, code: ErrorCode, request?: IncomingMessage) => {
    adopt(socket)
    const refusal = refusalOf(code)
    const { method, url: target } = request ?? {}
    const { requestId } = refusal
    const { remoteAddress: address } = socket
    recordUnrouted(records, { requestId, code, address, method, target })
    errors.with(code).inc()
    end(socket, handler.responseOn(socket), refusal)
  }
  const refuseExpectation = (request: IncomingMessage, response: ServerResponse) => {
    const code = 'request.expectation'
    errors.with(code).inc()
    const { type, text, requestId } = refusalOf(code)
    const { method, url: target } = request
    const { remoteAddress: address } = request.socket
    recordUnrouted(records, { requestId, code, address, method, target })
    response
      .writeHead(417, {
        'content-type': type,
        'x-request-id': requestId,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'connection': 'close',
        'content-length': Buffer.byteLength(text)
      })
      .end(text)
  }
  return { refuse, refuseExpectation }
}

interface Reactions {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onError: (error: Error) => void
}

/** Of http or https. */
function createHttpServer(
  settings: Config['gateway']['server'],
  tls: ServerTls | undefined,
  { onRequest, onError }: Reactions
): Server {
  const options = {
    headersTimeout: settings.headersTimeout,
    requestTimeout: Math.max(settings.requestTimeout, settings.headersTimeout),
    keepAliveTimeout: settings.keepAlive,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
    insecureHTTPParser: false,
    // A request without a body has no stream to be read and ended.
    optimizeEmptyRequests: true,
    // A request without Host is refused by the request policy, in the envelope.
    requireHostHeader: false
  }
  if (tls === undefined) return adopt(createServer(options, onRequest), onError)
  const secure = {
    ...options,
    ...secureContextOf(tls),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: settings.headersTimeout
  }
  return adopt(createTlsServer(secure, onRequest), onError) as Server
}

export function secureContextOf({ certificate, key }: ServerTls) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const
}

/** From now on new connections get this certificate; those that are open keep theirs. */
export function setCertificate(server: Server, tls: ServerTls): void {
  if (isTlsServer(server)) server.setSecureContext(secureContextOf(tls))
}

export function isTlsServer(server: unknown): server is TlsServer {
  return server instanceof TlsServer
}

/**
 * The stream of a request without a body never ends (`optimizeEmptyRequests`), so Fastify would
 * wait for ever for the body that a `Content-Type` promises: some clients send one with each
 * DELETE.
 */
function ignoreTypeOfNoBody({ headers }: IncomingMessage): void {
  if (
    headers['content-type'] !== undefined &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  ) {
    delete headers['content-type']
  }
}

/** Answers bytes that are not a request, and closes the connection: its framing is in doubt. */
function end(
  socket: Socket,
  response: ServerResponse | undefined,
  { status, requestId, type, text }: Refusal
): void {
  // An earlier request is being answered: the refusal must not be taken for its response.
  if (response !== undefined && (response.headersSent || response.req.complete)) {
    return void (response.writableEnded ? endUnread(socket) : socket.destroy())
  }
  const head = [
    `HTTP/1.1 ${status} Refused`,
    `content-type: ${type}`,
    `x-request-id: ${requestId}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'connection: close',
    `content-length: ${Buffer.byteLength(text)}`
  ]
  endUnread(socket, `${head.join('\r\n')}\r\n\r\n${text}`)
}

/** The client's time to read the rest of the response, then to close the connection. */
const unreadMs = { flush: 10_000, close: 1000 }

/**
 * Closes a connection by timers. Nothing is read from it any more, so the client's end or reset
 * would not be seen, and its descriptor would never be freed.
 */
export function endUnread(socket: Socket, last = ''): void {
  const destroySoon = (ms: number) => setTimeout(() => socket.destroy(), ms).unref()
  destroySoon(unreadMs.flush)
  socket.end(last, () => destroySoon(unreadMs.close))
}
