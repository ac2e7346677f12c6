/** The open connections of a process, bounded so that no client takes them all. */
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
  work: Work
}

/** The requests of a connection. */
interface Work {
  /** Those that have begun, and not ended. They end in their order. */
  readonly responses: ServerResponse[]
  /** For good, as a WebSocket. */
  isUpgraded: boolean
}

/** By the socket that requests come from: with https, the one with the encryption. */
const works = new WeakMap<Socket, Work>()

function beginWork(socket: Socket): Work {
  const work = { responses: [], isUpgraded: false }
  works.set(socket, work)
  return work
}

function onRequest({ socket }: IncomingMessage, response: ServerResponse): void {
  const responses = works.get(socket)?.responses
  responses?.push(response)
  // Not `close`: one that does not finish closes its connection.
  response.on('finish', () => responses?.shift())
}

function onUpgrade({ socket }: IncomingMessage): void {
  const work = works.get(socket)
  if (work !== undefined) work.isUpgraded = true
}

/** The responses of a connection that have begun, and not ended. */
export function responsesOf(socket: Socket): readonly ServerResponse[] {
  return works.get(socket)?.responses ?? []
}

export function createConnections(bound: Bound) {
  const { max, onRefused } = bound
  const maxOfAddress = Math.floor(max / 4)
  const isTrusted = createTrust(bound.trustedProxies)
  const countedAddress = createCountedAddress(bound.ipv6Prefix)
  /** The oldest first. */
  const open = new Map<string, Connection>()
  const ofAddress = new Map<string, number>()

  /** With https, the socket is the one below the encryption. */
  function accept(socket: Socket): void {
    const work = beginWork(socket)
    const { remoteAddress: ip } = socket
    if (ip === undefined) return
    const address = countedAddress({ ip, ips: [ip] })
    const count = ofAddress.get(address) ?? 0
    const hasTooMany = count >= maxOfAddress && !isTrusted(ip)
    if (hasTooMany || (open.size >= max && !closeIdle())) {
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    const connection = { socket, key: keyOf(socket), address, work }
    ofAddress.set(address, count + 1)
    open.set(connection.key, connection)
    socket.once('close', () => forget(connection))
  }

  function secure(socket: Socket): void {
    const work = beginWork(socket)
    const connection = open.get(keyOf(socket))
    if (connection !== undefined) connection.work = work
  }

  function closeIdle(): boolean {
    for (const connection of open.values()) {
      const { responses, isUpgraded } = connection.work
      if (responses.length > 0 || isUpgraded) continue
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
