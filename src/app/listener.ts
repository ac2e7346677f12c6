/**
 * The public listener: a Node server in front of the app, so that a reload replaces the app and
 * keeps connections. It answers requests that Node's parser refuses.
 */
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
import { createEnvelope } from '../shaping/envelope.ts'
import { type ErrorCode, GatewayError } from '../errors/errors.ts'
import { countingErrors } from './hooks/metrics.ts'
import { endAfterOffer, isUpgrade } from './hooks/upgrade.ts'
import { maxHeaders } from './hooks/request-policy.ts'
import { recordUnrouted, type UnroutedRecords } from './hooks/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { Trail } from '../observability/trail.ts'
import type { Services } from '../services/services.ts'
import { endSlowBodies, endStalledConnections } from './connections.ts'
import { refuseUnparsed, sendRefusal, takeUpgrade } from './unparsed.ts'

/** How long a client may take to send its headers, or to agree on keys. */
const headersTimeout = 10_000

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export type Records = UnroutedRecords & Pick<Services, 'metrics'>

export function createListener(
  { gateway, serverTls }: Pick<Config, 'gateway' | 'serverTls'>,
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
  const server = adopt(createHttpServer(options, serverTls), err => {
    // Errors of listen() go to its caller. This is one of accept(), such as no free descriptor.
    if (server.listening) log.error({ err }, 'a connection could not be accepted')
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
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

/** Refuses what reaches no app. */
function createRefuse({ envelope }: Config['gateway'], records: Records) {
  const { errorType, failure } = createEnvelope(envelope)
  const countError = countingErrors(records.metrics)
  return (socket: Socket, code: ErrorCode, request?: IncomingMessage): void => {
    const requestId = randomUUID()
    // The parser may have given up before the method.
    const { method = '', url = '' } = request ?? {}
    recordUnrouted(records, new Trail(requestId, method, url, socket.remoteAddress ?? ''), code)
    countError(code)
    const headers = {
      'content-type': errorType,
      'x-request-id': requestId,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff'
    }
    sendRefusal(adopt(socket), code, headers, failure(new GatewayError(code), requestId))
  }
}

/** Of http or https. */
export function createHttpServer(more: ServerOptions, tls: ServerTls | undefined): Server {
  const options = {
    headersTimeout,
    connectionsCheckingInterval: 1000,
    maxHeaderSize: 16 * 1024,
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

/** From now on new connections get this certificate; those that are open keep theirs. */
export function setCertificate(server: Server, tls: ServerTls): void {
  if (isTlsServer(server)) server.setSecureContext(secureContextOf(tls))
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
