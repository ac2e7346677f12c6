/** The server of the operators' listener: bounded headers, slow clients cut, upgrades ignored. */
import { randomUUID } from 'node:crypto'
import type { RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { endAfterOffer } from '../app/hooks/upgrade.ts'
import { type Connections, createConnections, responsesOf } from '../app/connections.ts'
import { createHttpServer, setCertificate } from '../app/listener.ts'
import { endStalledConnections } from '../app/stalled-connections.ts'
import { passExpectations, type Refusal, refuseUnparsed, sendRefusal } from '../app/unparsed.ts'
import type { ServerTls } from '../config/schema/config.ts'
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import { opsHeaders } from './response-headers.ts'
import { adopt } from '../observability/emitters.ts'

const headersMs = 10_000
/** A client that takes nothing of its responses for this time loses its connection. */
const stallMs = 30_000
/** An unused connection stays open for this time. */
const keepAliveMs = 72_000
const options = {
  headersTimeout: headersMs,
  requestTimeout: 30_000,
  keepAliveTimeout: keepAliveMs,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 16 * 1024,
  insecureHTTPParser: false
}
const maxConnections = 1000
const ipv6Prefix = 64

export const maxOpsBody = 64 * 1024

/** Beyond it, responses that are not read, and live streams, are cut at a stop. */
export const graceMs = 2000

/** The servers of one listener: `localhost` may stand for two addresses. */
export class OpsServers {
  readonly #servers: Server[] = []
  readonly #connections: Connections
  #tls: ServerTls | undefined

  constructor(tls: ServerTls | undefined, trustedProxies: readonly string[]) {
    this.#tls = tls
    this.#connections = createConnections({ max: maxConnections, trustedProxies, ipv6Prefix })
  }

  /** Makes a server for Fastify. */
  readonly create = (handler: RequestListener): Server => {
    const server = createBoundedServer(this.#tls, handler)
    this.#servers.push(server)
    this.#connections.add(server)
    return server
  }

  /** From now on new connections get this certificate. */
  setCertificate(tls: ServerTls): void {
    if (isDeepStrictEqual(tls, this.#tls)) return
    for (const server of this.#servers) setCertificate(server, tls)
    this.#tls = tls
  }

  destroyAll(): void {
    this.#connections.destroyAll()
  }
}

function createBoundedServer(tls: ServerTls | undefined, handler: RequestListener): Server {
  const server = createHttpServer(options, tls).on('request', handler)
  endStalledConnections(server, stallMs)
  // No bound beside that of their size: Node would drop further headers silently.
  server.maxHeadersCount = 0
  const refuse = (socket: Socket, code: ErrorCode) =>
    sendRefusal(adopt(socket), refusalOf(code), responsesOf(socket))
  server.prependListener('request', endAfterOffer)
  server.on('connect', (_request, socket: Socket) => refuse(socket, 'route.method'))
  passExpectations(server)
  refuseUnparsed(server, { refuse })
  return server
}

function refusalOf(code: ErrorCode): Refusal {
  const requestId = randomUUID()
  const { status, en: error } = errorKinds[code]
  return {
    status,
    headers: {
      ...opsHeaders,
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': requestId
    },
    text: JSON.stringify({ error, code, requestId })
  }
}
