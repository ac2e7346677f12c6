/** Connections by peer: one that has too many already gets no further one. */
import type { Server, Socket } from 'node:net'
import type { Config } from '../../config/schema/config.ts'
import { createCountedAddress, createTrust } from '../hooks/address.ts'
import type { ShedLog } from './shed-log.ts'

/** The bound of one config. */
interface Bound {
  readonly max: number
  readonly isTrusted: (address: string) => boolean
  readonly addressOf: (socket: Socket) => string
}

export class Peers {
  readonly #shed: ShedLog
  /** Only those with a connection. */
  readonly #connections = new Map<string, number>()
  #bound: Bound

  constructor(config: Config, shed: ShedLog) {
    this.#shed = shed
    this.#bound = boundOf(config)
  }

  /** From now on this config bounds new connections. */
  activate(config: Config): void {
    this.#bound = boundOf(config)
  }

  /** Bounds the connections of a listener. */
  follow(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket))
  }

  #add(socket: Socket): void {
    const { max, isTrusted, addressOf } = this.#bound
    const { remoteAddress } = socket
    if (remoteAddress === undefined || isTrusted(remoteAddress)) return
    const address = addressOf(socket)
    const count = this.#connections.get(address) ?? 0
    if (count >= max) {
      this.#shed.count('connections', { address })
      return void socket.resetAndDestroy()
    }
    this.#connections.set(address, count + 1)
    socket.once('close', () => this.#remove(address))
  }

  #remove(address: string): void {
    const count = (this.#connections.get(address) ?? 1) - 1
    if (count === 0) this.#connections.delete(address)
    else this.#connections.set(address, count)
  }
}

function boundOf({ gateway: { server }, limits }: Config): Bound {
  const countedAddress = createCountedAddress(limits.ipv6Prefix)
  return {
    max: server.overload.connectionsPerAddress,
    isTrusted: createTrust(server.trustedProxies),
    addressOf: ({ remoteAddress = '' }) =>
      countedAddress({ ip: remoteAddress, ips: [remoteAddress] })
  }
}
