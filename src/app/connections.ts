/** Bounds the connections to a process, so that no client takes them all. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createCountedAddress, createTrust } from './hooks/address.ts'

interface Bound {
  /** Connections to all listeners together; one address gets at most a quarter of them. */
  readonly max: number
  /** They may have all. */
  readonly trustedProxies: readonly string[]
  readonly ipv6Prefix: number
  /** Called for each connection beyond the bound, which is reset. */
  readonly onRefused?: (address: string) => void
}

interface Connection {
  readonly socket: Socket
  readonly key: string
  readonly address: string
  /** Requests without a whole response; a WebSocket is one for good. */
  requests: number
}

/** @returns to be called with each listener */
export function boundConnections(bound: Bound): (server: Server) => void {
  const { max, onRefused } = bound
  const maxOfAddress = Math.floor(max / 4)
  const isTrusted = createTrust(bound.trustedProxies)
  const countedAddress = createCountedAddress(bound.ipv6Prefix)
  /** The oldest first. */
  const open = new Map<string, Connection>()
  const ofAddress = new Map<string, number>()

  /** With https, the socket is the one below the encryption. */
  function accept(socket: Socket): void {
    const { remoteAddress: ip } = socket
    if (ip === undefined) return
    const address = countedAddress({ ip, ips: [ip] })
    const count = ofAddress.get(address) ?? 0
    const hasTooMany = count >= maxOfAddress && !isTrusted(ip)
    if (hasTooMany || (open.size >= max && !closeIdle())) {
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    const connection = { socket, key: keyOf(socket), address, requests: 0 }
    ofAddress.set(address, count + 1)
    open.set(connection.key, connection)
    socket.once('close', () => forget(connection))
  }

  function closeIdle(): boolean {
    for (const connection of open.values()) {
      if (connection.requests > 0) continue
      // Not after its `close`, which comes in a later turn: the next one would close another.
      forget(connection)
      connection.socket.destroy()
      return true
    }
    return false
  }

  function forget(connection: Connection): void {
    const { key, address } = connection
    if (open.get(key) !== connection) return
    open.delete(key)
    const count = (ofAddress.get(address) ?? 1) - 1
    if (count === 0) ofAddress.delete(address)
    else ofAddress.set(address, count)
  }

  function onRequest({ socket }: IncomingMessage, response?: ServerResponse): void {
    const connection = open.get(keyOf(socket))
    if (connection === undefined) return
    connection.requests++
    // Not `close`: one that does not finish closes its connection.
    response?.on('finish', () => connection.requests--)
  }

  return server => {
    server.on('connection', accept)
    server.prependListener('request', onRequest)
    // Where nobody takes upgrades, Node gives them as requests; a listener would change that.
    if (server.listenerCount('upgrade') === 0) return
    server.prependListener('upgrade', (request: IncomingMessage) => onRequest(request))
  }
}

/** The same for the two sockets of an encrypted connection. */
function keyOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
