/** Completes every response: standard headers, one write for a small body, an end for readers that stand still. */
import { isAscii } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The headers of every response, unless its route sets them itself. */
export type StandardHeaders = Readonly<Record<string, string>>

export function standardHeaders(secure: boolean): StandardHeaders {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    ...(secure && { 'strict-transport-security': 'max-age=31536000' })
  }
}

/** Larger bodies may wait for their reader, and are not copied. */
const oneWriteBytes = 16 * 1024

/** @param stallMs how long a response may make no progress, where its route says nothing else */
export function addSending(
  app: FastifyInstance,
  { headers, stallMs }: { readonly headers: StandardHeaders; readonly stallMs: number }
): void {
  app.addHook('onSend', function completeResponse(request, reply, payload, done) {
    setStandardHeaders(request, reply, headers)
    if (payload === null || payload === undefined) return done()
    const { length = Infinity } = payload as { readonly length?: number }
    if (length > oneWriteBytes) limitStall(reply, stallMs)
    // perf: Node sends a text together with the headers in one write, and bytes in a second one.
    else if (Buffer.isBuffer(payload) && isAscii(payload)) {
      return done(null, payload.toString('latin1'))
    }
    done()
  })
}

export function setStandardHeaders(
  request: Pick<FastifyRequest, 'id'>,
  reply: Pick<FastifyReply, 'header' | 'hasHeader'>,
  headers: StandardHeaders
): void {
  for (const name in headers) if (!reply.hasHeader(name)) reply.header(name, headers[name])
  reply.header('x-request-id', request.id)
}

/** Node looks at a socket's progress when its time is over, so one long time would be two. */
const looks = 10

/**
 * Ends the connection of a client that has stopped reading: its response holds memory and files.
 * Each byte that the client takes is progress.
 */
function limitStall({ raw, request }: FastifyReply, usualMs: number): void {
  const stallMs = request.routeOptions.config.stallMs ?? usualMs
  const stepMs = stallMs / looks
  let stillMs = 0
  let lookedAt = performance.now()
  raw.setTimeout(stepMs, () => {
    const { socket } = raw
    const passedMs = performance.now() - lookedAt
    lookedAt += passedMs
    // Without progress a look follows upon the other. With nothing left to take, not the client is
    // slow but the response.
    const isStill = (socket?.writableLength ?? 0) > 0
    if (!isStill) stillMs = 0
    else stillMs = passedMs < 1.5 * stepMs ? stillMs + passedMs : stepMs
    if (stillMs >= stallMs) socket?.destroy()
    else socket?.setTimeout(stepMs)
  })
}
