/** The open connections of a process, bounded so that no client takes them all. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { countedAddress, createTrust } from './hooks/address.ts'
import { countingIn } from './hooks/limits.ts'

interface Bound {
  /** Connections to all listeners together; one address gets at most a quarter of them. */
  readonly max: number
  /** They may have all. */
  readonly trustedProxies: readonly string[]
  /** Called for each connection beyond the bound, which is reset. */
  readonly onRefused?: (address: string) => void
}

interface Connection {
  /** With https, the one below the encryption. */
  readonly socket: Socket
  readonly address: string
  /** Those that have begun, and not ended. They end in their order. */
  readonly responses: ServerResponse[]
  /** For good, as a WebSocket. */
  isUpgraded: boolean
}

/** By the socket that requests come from: with https, the one with the encryption. */
const connections = new WeakMap<Socket, Connection>()

/** Also of a client that has left, and has no address any more: its requests are still read. */
function begin(socket: Socket, address = ''): Connection {
  const connection = { socket, address, responses: [], isUpgraded: false }
  connections.set(socket, connection)
  return connection
}

function onRequest({ socket }: IncomingMessage, response: ServerResponse): void {
  const responses = connections.get(socket)?.responses
  responses?.push(response)
  // Not `close`: one that does not finish closes its connection.
  response.on('finish', () => responses?.shift())
}

function onUpgrade({ socket }: IncomingMessage): void {
  const connection = connections.get(socket)
  if (connection !== undefined) connection.isUpgraded = true
}

/** The responses of a connection that have begun, and not ended. */
export function responsesOf(socket: Socket): readonly ServerResponse[] {
  return connections.get(socket)?.responses ?? []
}

export function createConnections(bound: Bound) {
  const { max, onRefused } = bound
  const maxOfAddress = Math.floor(max / 4)
  const isTrusted = createTrust(bound.trustedProxies)
  /** The oldest first. */
  const open = new Map<string, Connection>()
  const ofAddress = new Map<string, number>()
  const count = countingIn(ofAddress)

  function accept(socket: Socket): void {
    const { remoteAddress: ip } = socket
    const address = ip === undefined ? '' : countedAddress({ ip, ips: [ip] })
    const connection = begin(socket, address)
    if (ip === undefined) return
    const hasTooMany = (ofAddress.get(address) ?? 0) >= maxOfAddress && !isTrusted(ip)
    if (hasTooMany || (open.size >= max && !closeIdle())) {
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    const key = keyOf(socket)
    open.set(key, connection)
    count(address, 1)
    socket.once('close', () => forget(key, connection))
  }

  function secure(socket: Socket): void {
    const connection = open.get(keyOf(socket))
    if (connection === undefined) begin(socket)
    else connections.set(socket, connection)
  }

  function closeIdle(): boolean {
    for (const [key, connection] of open) {
      const { socket, responses, isUpgraded } = connection
      if (responses.length > 0 || isUpgraded) continue
      // Not after its `close`, which comes in a later turn: the next one would close another.
      forget(key, connection)
      socket.destroy()
      return true
    }
    return false
  }

  function forget(key: string, connection: Connection): void {
    if (open.get(key) !== connection) return
    open.delete(key)
    count(connection.address, -1)
  }

  return {
    /** Bounds those of a listener, too. */
    add: (server: Server): void => {
      server.on('connection', accept).on('secureConnection', secure)
      server.prependListener('request', onRequest)
      // Where nobody takes upgrades, Node gives them as requests; a listener would change that.
      if (server.listenerCount('upgrade') > 0) server.prependListener('upgrade', onUpgrade)
    },
    /** Also what no server knows: sockets that have not agreed on keys yet, and WebSockets. */
    destroyAll: (): void => {
      for (const { socket } of open.values()) socket.destroy()
    }
  }
}

/** The same for the two sockets of an encrypted connection. */
function keyOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
