/**
 * Ends connections whose client takes nothing of their responses, however short these are: a client
 * that sends many requests at once, and reads nothing, would keep its connection for good. Long
 * responses have a time of their own (`hooks/sending.ts`).
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const maxSweepMs = 1000

/** @param stallMs how long no byte of what was written may be taken */
export function endStalledConnections(server: Server, stallMs: number): void {
  // The part of a millisecond tells this time from Node's own, such as that of unused connections.
  const ownMs = stallMs + 0.5
  const sockets = new Set<Socket>()
  const add = (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  // With TLS, what is written waits in the second.
  server.on('connection', add).on('secureConnection', add)
  const sweep = setInterval(
    () => {
      for (const socket of sockets) watch(socket, ownMs)
    },
    Math.min(maxSweepMs, stallMs / 2)
  ).unref()
  server.once('close', () => clearInterval(sweep))
}

/** Each byte that the client takes restarts the time; when it is over, Node closes the socket. */
function watch(socket: Socket, ownMs: number): void {
  const isPending = socket.writableLength > 0
  if (isPending && (socket.timeout ?? 0) === 0) socket.setTimeout(ownMs)
  // A client that took all of it may wait for the next response.
  if (!isPending && socket.timeout === ownMs) socket.setTimeout(0)
}
