/** The operators' listener, and the Unix socket of local commands: servers in front of one app. */
import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createConnections, endStalledConnections } from '../app/connections.ts'
import { endAfterOffer } from '../app/hooks/upgrade.ts'
import { createHttpServer, setCertificate, refuseUnparsed, sendRefusal } from '../app/listener.ts'
import type { ServerTls } from '../config/schema/config.ts'
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { opsHeaders } from './responses.ts'

const options = { requestTimeout: 30_000, keepAliveTimeout: 72_000 }
/** A client that takes nothing of its responses for this time loses its connection. */
const stallMs = 30_000
const maxConnections = 1000
const maxLocalConnections = 100
const graceMs = 2000

const localSockets = new WeakSet<Socket>()

export function isLocal({ raw }: FastifyRequest): boolean {
  return localSockets.has(raw.socket)
}

/** @param trustedProxies may have all connections; another address gets a quarter of them */
export function createOpsListener(
  app: FastifyInstance,
  tls: ServerTls | undefined,
  trustedProxies: readonly string[]
) {
  const server = serve(app, tls)
  const local = serve(app, undefined).on('connection', socket => localSockets.add(socket))
  const connections = createConnections(maxConnections, trustedProxies)
  connections.add(server)
  local.maxConnections = maxLocalConnections
  return {
    server,
    local,
    setCertificate: (next: ServerTls): void => setCertificate(server, next),
    close: async (): Promise<void> => {
      const cut = setTimeout(() => {
        connections.destroyAll()
        local.closeAllConnections()
      }, graceMs).unref()
      await Promise.all([server, local].map(closed))
      clearTimeout(cut)
    }
  }
}

function serve(app: FastifyInstance, tls: ServerTls | undefined): Server {
  const server = createHttpServer(options, tls)
  server.on('request', (request, response) => app.routing(request, response))
  endStalledConnections(server, stallMs)
  // No bound beside that of their size: Node would drop further headers silently.
  server.maxHeadersCount = 0
  server.prependListener('request', endAfterOffer)
  refuseUnparsed(server, refuse)
  return server
}

function refuse(socket: Socket, code: ErrorCode): void {
  const requestId = randomUUID()
  const { en: error } = errorKinds[code]
  const type = 'application/json; charset=utf-8'
  const headers = { ...opsHeaders, 'content-type': type, 'x-request-id': requestId }
  sendRefusal(adopt(socket), code, headers, { error, code, requestId })
}

function closed(server: Server): Promise<void> {
  return new Promise(resolve => void server.close(() => resolve()))
}
