/** The open connections of a server. */
import type { Server } from 'node:http'
import { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'

export function isTlsServer(server: unknown): server is TlsServer {
  return server instanceof TlsServer
}

/**
 * Of a server with TLS, `connection` includes those that have not agreed on keys yet, which
 * `closeAllConnections` does not know.
 */
export function openSockets(
  server: Server,
  since: 'connection' | 'secureConnection' = 'connection'
): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on(since, (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}
