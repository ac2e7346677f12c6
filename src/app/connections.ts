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
  readonly address: string
}

/** @returns to be called with each listener */
export function boundConnections(bound: Bound): (server: Server) => void {
  const { max, onRefused } = bound
  const isTrusted = createTrust(bound.trustedProxies)
  const countedAddress = createCountedAddress(bound.ipv6Prefix)
  const open = new Map<string, Connection>()
  const ofAddress = new Map<string, number>()
  /** Keys of those without a request, the oldest first. */
  const idle = new Set<string>()

  function accept(socket: Socket): void {
    const { remoteAddress: ip } = socket
    if (ip === undefined) return
    const key = keyOf(socket)
    const address = countedAddress({ ip, ips: [ip] })
    const count = ofAddress.get(address) ?? 0
    const hasTooMany = count >= Math.max(1, Math.floor(max / 4)) && !isTrusted(ip)
    if (hasTooMany || (open.size >= max && !closeOldestIdle())) {
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    ofAddress.set(address, count + 1)
    open.set(key, { socket, address })
    idle.add(key)
    socket.once('close', () => forget(key))
  }

  function closeOldestIdle(): boolean {
    for (const key of idle) {
      const { socket } = open.get(key) ?? {}
      // Not after its `close`, which comes in a later turn: the next one would close another.
      forget(key)
      socket?.destroy()
      return true
    }
    return false
  }

  function forget(key: string): void {
    const { address } = open.get(key) ?? {}
    if (address === undefined) return
    open.delete(key)
    idle.delete(key)
    const count = (ofAddress.get(address) ?? 1) - 1
    if (count === 0) ofAddress.delete(address)
    else ofAddress.set(address, count)
  }

  function onRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    const key = keyOf(socket)
    idle.delete(key)
    response.once('close', () => {
      if (open.has(key)) idle.add(key)
    })
  }

  return server => {
    // With https, this is the socket below the encryption.
    server.on('connection', accept)
    server.prependListener('request', onRequest)
    for (const event of ['upgrade', 'connect']) {
      server.prependListener(event, ({ socket }: IncomingMessage) => idle.delete(keyOf(socket)))
    }
  }
}

/** The same for the two sockets of an encrypted connection. */
function keyOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
