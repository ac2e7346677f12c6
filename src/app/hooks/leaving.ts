/** The moment from which nobody reads a response, for work that can still be left undone. */
import type { ServerResponse } from 'node:http'
import { gone } from '../../proxy/response.ts'

/**
 * Aborted when the response is closed before its end, with the error of a client that left.
 * Fastify's own signal is aborted as soon as the body of a POST is read.
 */
export function leavingOf(response: ServerResponse): AbortSignal {
  const end = new AbortController()
  const leave = () => {
    if (!response.writableFinished) end.abort(gone())
  }
  if (response.closed) leave()
  else response.once('close', leave)
  return end.signal
}
