/** Ends clients that are too slow: in sending a body, or in taking their responses. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { responsesOf } from './connections.ts'
import { stalled } from './hooks/leaving.ts'
import { webSockets } from './hooks/upgrade.ts'
import { isBodyPending, maxCollectedBytes } from '../proxy/request-body.ts'

const maxSweepMs = 1000

function sweepEach(server: Server, ms: number, sweep: () => void): void {
  const timer = setInterval(sweep, Math.min(maxSweepMs, ms)).unref()
  server.once('close', () => clearInterval(timer))
}

/**
 * A body that is collected has to be whole in `timeoutMs`. A longer one is streamed, and has a
 * minimum rate in the place of a time (`watchRate`).
 */
export function endSlowBodies(
  server: Server,
  timeoutMs: number,
  end: (socket: Socket) => void
): void {
  const pending = new Map<IncomingMessage, { since: number; bytesBefore: number }>()
  server.prependListener('request', (request: IncomingMessage) => {
    if (!isBodyPending(request)) return
    pending.set(request, { since: performance.now(), bytesBefore: request.socket.bytesRead })
  })
  sweepEach(server, timeoutMs / 4, () => {
    const due = performance.now() - timeoutMs
    for (const [request, { since, bytesBefore }] of pending) {
      const { socket } = request
      const isOver = request.complete || socket.destroyed
      if (!isOver && since > due) continue
      pending.delete(request)
      if (!isOver && socket.bytesRead - bytesBefore <= maxCollectedBytes) end(socket)
    }
  })
}

/** Node looks at a socket's progress when its time is over, so one long time would be two. */
const looks = 10

interface Progress {
  stillMs: number
  lookedAt: number
}

/**
 * Ends connections whose client takes nothing of its responses, which hold memory and files. Each
 * byte that the client takes is progress.
 * @param stallMs how long no byte of what was written may be taken
 */
export function endStalledConnections(server: Server, stallMs: number): void {
  const sockets = new Map<Socket, Progress>()
  // Its part of a millisecond tells it from Node's own times, such as that of unused connections.
  const stepMs = Math.floor(stallMs / looks) + 0.5
  const add = (socket: Socket) => {
    const progress = { stillMs: 0, lookedAt: 0 }
    sockets.set(socket, progress)
    socket.on('timeout', () => look(socket, progress))
    socket.once('close', () => sockets.delete(socket))
  }

  function look(socket: Socket, progress: Progress): void {
    if (socket.timeout !== stepMs) return
    const passedMs = performance.now() - progress.lookedAt
    progress.lookedAt += passedMs
    // Without progress a look follows upon the other.
    progress.stillMs = passedMs < 1.5 * stepMs ? progress.stillMs + passedMs : stepMs
    // With nothing left to take, not the client is slow but the response, or the next request.
    if (socket.writableLength === 0) socket.setTimeout(0)
    else if (progress.stillMs >= stallMs) end(socket)
    else socket.setTimeout(stepMs)
  }

  function end(socket: Socket): void {
    const [current] = responsesOf(socket)
    if (current !== undefined) stalled.add(current)
    socket.destroy()
  }

  function watch(socket: Socket, progress: Progress): void {
    if (socket.writableLength === 0 || (socket.timeout ?? 0) > 0 || webSockets.has(socket)) return
    Object.assign(progress, { stillMs: 0, lookedAt: performance.now() })
    socket.setTimeout(stepMs)
  }

  // Before the sockets' own listeners. Without it, Node ends a connection at any time-out.
  server.on('timeout', (socket: Socket) => {
    if (socket.timeout !== stepMs) socket.destroy()
  })
  // With TLS, what is written waits in the second.
  server.on('connection', add).on('secureConnection', add)
  sweepEach(server, stallMs / looks, () => {
    for (const [socket, progress] of sockets) watch(socket, progress)
  })
}
