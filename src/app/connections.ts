/** The open connections of a process: no client takes them all, or keeps one by being slow. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isBodyPending, maxCollectedBytes } from '../proxy/request-body.ts'
import { countedAddress, createTrust } from './hooks/address.ts'
import { takeSlot } from './hooks/limits.ts'
import { stalled } from './hooks/sending.ts'
import { webSockets } from './hooks/upgrade.ts'

interface Connection {
  readonly socket: Socket
  /** Those that have begun, and not ended, in their order. */
  readonly responses: ServerResponse[]
  isUpgraded: boolean
  leave: () => void
}

/** By the socket that requests come from: with https, the one with the encryption. */
const connections = new WeakMap<Socket, Connection>()

/** Also of a client that has left, and has no address any more: its requests are still read. */
function begin(socket: Socket): Connection {
  const connection = { socket, responses: [], isUpgraded: false, leave: () => {} }
  connections.set(socket, connection)
  return connection
}

function beginResponse({ socket }: IncomingMessage, response: ServerResponse): void {
  const responses = connections.get(socket)?.responses
  responses?.push(response)
  // Not `close`: one that does not finish closes its connection.
  response.on('finish', () => responses?.shift())
}

/** Not idle from now on. Its response is not kept: a WebSocket may last for days. */
export function setUpgraded(socket: Socket): void {
  const connection = connections.get(socket)
  if (connection !== undefined) connection.isUpgraded = true
}

export function responsesOf(socket: Socket): readonly ServerResponse[] {
  return connections.get(socket)?.responses ?? []
}

/**
 * @param max of all listeners together; one address that is no trusted proxy gets a quarter
 * @param onRefused called for each connection beyond the bound, which is reset
 */
export function createConnections(
  max: number,
  trustedProxies: readonly string[],
  onRefused?: (address: string) => void
) {
  const isTrusted = createTrust(trustedProxies)
  /** The oldest first. */
  const open = new Map<string, Connection>()
  const counts = new Map<string, number>()

  function accept(socket: Socket): void {
    const connection = begin(socket)
    const { remoteAddress: ip } = socket
    if (ip === undefined) return
    const address = countedAddress({ ip, ips: [ip] })
    const release = takeSlot(counts, address, isTrusted(ip) ? Infinity : Math.floor(max / 4))
    if (release === undefined || (open.size >= max && !closeIdle())) {
      release?.()
      onRefused?.(address)
      return void socket.resetAndDestroy()
    }
    const key = keyOf(socket)
    open.set(key, connection)
    connection.leave = () => {
      open.delete(key)
      release()
      connection.leave = () => {}
    }
    socket.once('close', () => connection.leave())
  }

  function secure(socket: Socket): void {
    const connection = open.get(keyOf(socket))
    if (connection === undefined) begin(socket)
    else connections.set(socket, connection)
  }

  function closeIdle(): boolean {
    for (const { socket, responses, isUpgraded, leave } of open.values()) {
      if (responses.length > 0 || isUpgraded) continue
      // Not after its `close`, which comes in a later turn: the next one would close another.
      leave()
      socket.destroy()
      return true
    }
    return false
  }

  return {
    add: (server: Server): void => {
      server.on('connection', accept).on('secureConnection', secure)
      server.prependListener('request', beginResponse)
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

function sweepEach(server: Server, ms: number, sweep: () => void): void {
  const timer = setInterval(sweep, Math.min(1000, ms)).unref()
  server.once('close', () => clearInterval(timer))
}

/** A body that is collected has to be whole in `timeoutMs`; a longer one has a minimum rate. */
export function endSlowBodies(server: Server, timeoutMs: number, end: (socket: Socket) => void) {
  const pending = new Map<IncomingMessage, { since: number; bytesBefore: number }>()
  server.prependListener('request', (request: IncomingMessage) => {
    if (!isBodyPending(request)) return
    pending.set(request, { since: performance.now(), bytesBefore: request.socket.bytesRead })
  })
  sweepEach(server, timeoutMs / 4, () => {
    for (const [request, { since, bytesBefore }] of pending) {
      const { socket } = request
      const isOver = request.complete || socket.destroyed
      if (!isOver && performance.now() - since < timeoutMs) continue
      pending.delete(request)
      if (!isOver && socket.bytesRead - bytesBefore <= maxCollectedBytes) end(socket)
    }
  })
}

/** Node looks at a socket's progress when its time is over, so one long time would be two. */
const looks = 10

/** A client that takes nothing of its responses holds memory and files. Each byte is progress. */
export function endStalledConnections(server: Server, stallMs: number): void {
  /** By socket: how long it took nothing, and when that was looked at. */
  const watched = new Map<Socket, { stillMs: number; lookedAt: number }>()
  // Its part of a millisecond tells it from Node's own times, such as that of unused connections.
  const stepMs = Math.floor(stallMs / looks) + 0.5

  function look(socket: Socket): void {
    const state = watched.get(socket)
    if (state === undefined || socket.timeout !== stepMs) return
    const passedMs = performance.now() - state.lookedAt
    state.lookedAt += passedMs
    // Without progress a look follows upon the other.
    state.stillMs = passedMs < 1.5 * stepMs ? state.stillMs + passedMs : stepMs
    // With nothing left to take, not the client is slow but the response, or the next request.
    if (socket.writableLength === 0) socket.setTimeout(0)
    else if (state.stillMs < stallMs) socket.setTimeout(stepMs)
    else {
      const [current] = responsesOf(socket)
      if (current !== undefined) stalled.add(current)
      socket.destroy()
    }
  }

  const add = (socket: Socket) => {
    watched.set(socket, { stillMs: 0, lookedAt: 0 })
    socket.on('timeout', () => look(socket)).once('close', () => watched.delete(socket))
  }
  // Before the sockets' own listeners. Without it, Node ends a connection at any time-out.
  server.on('timeout', (socket: Socket) => {
    if (socket.timeout !== stepMs) socket.destroy()
  })
  // With TLS, what is written waits in the second.
  server.on('connection', add).on('secureConnection', add)
  sweepEach(server, stallMs / looks, () => {
    for (const [socket, state] of watched) {
      const { writableLength, timeout = 0 } = socket
      if (writableLength === 0 || timeout > 0 || webSockets.has(socket)) continue
      Object.assign(state, { stillMs: 0, lookedAt: performance.now() })
      socket.setTimeout(stepMs)
    }
  })
}
