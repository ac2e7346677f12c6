/** Ends requests whose body does not come in time. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { isBodyPending, maxCollectedBytes } from '../proxy/request-body.ts'

const maxSweepMs = 1000

interface Pending {
  readonly since: number
  readonly bytesBefore: number
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
  const pending = new Map<IncomingMessage, Pending>()
  server.prependListener('request', (request: IncomingMessage) => {
    if (!isBodyPending(request)) return
    pending.set(request, { since: performance.now(), bytesBefore: request.socket.bytesRead })
  })
  const sweep = setInterval(
    () => {
      const due = performance.now() - timeoutMs
      for (const [request, { since, bytesBefore }] of pending) {
        const { socket } = request
        const isOver = request.complete || socket.destroyed
        if (!isOver && since > due) continue
        pending.delete(request)
        if (!isOver && socket.bytesRead - bytesBefore <= maxCollectedBytes) end(socket)
      }
    },
    Math.min(maxSweepMs, timeoutMs / 4)
  ).unref()
  server.once('close', () => clearInterval(sweep))
}
