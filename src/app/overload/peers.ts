/** Connections by peer: one that has too many already gets no further one. */
import type { Server, Socket } from 'node:net'
import type { Config } from '../../config/schema/config.ts'
import { createCountedAddress, createTrust } from '../hooks/address.ts'
import type { ShedLog } from './shed-log.ts'

/** Bounds the connections of each peer to all listeners together, but for trusted proxies. */
export function boundPeers(
  servers: readonly Server[],
  { gateway, limits }: Pick<Config, 'gateway' | 'limits'>,
  shed: Pick<ShedLog, 'count'>
): void {
  const { overload, trustedProxies } = gateway.server
  const isTrusted = createTrust(trustedProxies)
  const countedAddress = createCountedAddress(limits.ipv6Prefix)
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
    if (count >= overload.connectionsPerAddress) {
      shed.count('connections', { address })
      return void socket.resetAndDestroy()
    }
    connections.set(address, count + 1)
    socket.once('close', () => leave(address))
  }
  for (const server of servers) server.on('connection', accept)
}
