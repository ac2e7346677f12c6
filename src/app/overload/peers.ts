/** Connections by peer: one that has too many already gets no further one. */
import type { Server, Socket } from 'node:net'
import { createCountedAddress, createTrust } from '../hooks/address.ts'

interface Bound {
  /** Connections that one peer may have to all listeners together. */
  readonly max: number
  /** They are not counted. */
  readonly trustedProxies: readonly string[]
  readonly ipv6Prefix: number
  /** Called for each connection beyond the bound, which is reset. */
  readonly onRefused?: (address: string) => void
}

/** @returns to be called with each listener */
export function createPeerBound(bound: Bound): (server: Server) => void {
  const { max, onRefused } = bound
  const isTrusted = createTrust(bound.trustedProxies)
  const countedAddress = createCountedAddress(bound.ipv6Prefix)
  /** Only those with a connection. */
  const connections = new Map<string, number>()

  const leave = (address: string) => {
    const count = (connections.get(address) ?? 1) - 1
    if (count === 0) connections.delete(address)
    else connections.set(address, count)
  }

  /** With https, the socket is the one below the encryption. */
  const accept = (socket: Socket) => {
    const { remoteAddress: ip } = socket
    if (ip === undefined || isTrusted(ip)) return
    const address = countedAddress({ ip, ips: [ip] })
    const count = connections.get(address) ?? 0
    if (count >= max) {
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    connections.set(address, count + 1)
    socket.once('close', () => leave(address))
  }
  return server => void server.on('connection', accept)
}
