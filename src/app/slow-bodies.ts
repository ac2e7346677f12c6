/** Ends requests whose body does not come in time. */
import type { IncomingMessage, Server } from 'node:http'
import { isBodyPending } from '../proxy/request-body.ts'

const maxSweepMs = 1000
/** A body with more is streamed. */
const collectBytes = 64 * 1024
/** That of Node's own time-out of whole requests. */
const timeOutCode = 'ERR_HTTP_REQUEST_TIMEOUT'

interface Pending {
  readonly since: number
  readonly bytesBefore: number
}

/**
 * A body that is collected has to be whole in `timeoutMs`. A longer one is streamed, and has a
 * minimum rate in the place of a time (`watchRate`).
 */
export function endSlowBodies(server: Server, timeoutMs: number): void {
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
        if (isOver || socket.bytesRead - bytesBefore > collectBytes) continue
        const error = Object.assign(new Error('the body took too long'), { code: timeOutCode })
        server.emit('clientError', error, socket)
      }
    },
    Math.min(maxSweepMs, timeoutMs / 4)
  ).unref()
  server.once('close', () => clearInterval(sweep))
}
