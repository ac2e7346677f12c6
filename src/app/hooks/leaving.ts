/** The moment from which nobody reads a response, for work that can still be left undone. */
import type { ServerResponse } from 'node:http'
import { GatewayError } from '../../errors/errors.ts'

/** Responses whose client took nothing for too long. */
export const stalled = new WeakSet<ServerResponse>()

/**
 * Aborted when the response is closed before its end, with the error of a client that left.
 * Fastify's own signal is aborted as soon as the body of a POST is read.
 */
export function leavingOf(response: ServerResponse): AbortController {
  const end = new AbortController()
  const leave = () => {
    if (response.writableFinished) return
    end.abort(new GatewayError('request.malformed', { cause: new Error('the client left') }))
  }
  if (response.closed) leave()
  else response.once('close', leave)
  return end
}
