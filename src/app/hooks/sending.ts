/** Completes each response: standard headers, small bodies in one write, an end for still readers. */
import { isAscii } from 'node:buffer'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** Larger bodies may wait for their reader, and are not copied. */
const oneWriteBytes = 16 * 1024

const transportHeader = 'strict-transport-security'

export function addSending(app: FastifyInstance): void {
  const { idleTimeout } = app.gateway.config.gateway.server
  app.addHook('onSend', function completeResponse(_request, reply, payload, done) {
    setStandardHeaders(reply)
    if (payload === null || payload === undefined) return done()
    const { length = Infinity } = payload as { readonly length?: number }
    if (length > oneWriteBytes) limitStall(reply, idleTimeout)
    // perf: Node sends a text together with the headers in one write, and bytes in a second one.
    else if (Buffer.isBuffer(payload) && isAscii(payload)) {
      return done(null, payload.toString('latin1'))
    }
    done()
  })
}

/** The headers of every response, unless its route sets them itself. */
const standardHeaders = Object.entries({
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'"
})

export function setStandardHeaders(reply: FastifyReply): void {
  for (const [name, value] of standardHeaders) if (!reply.hasHeader(name)) reply.header(name, value)
  if (reply.server.gateway.cookie.options.secure && !reply.hasHeader(transportHeader)) {
    reply.header(transportHeader, 'max-age=31536000')
  }
  reply.header('x-request-id', reply.request.id)
}

/** Node looks at a socket's progress when its time is over, so one long time would be two. */
const looks = 10

/**
 * Ends the connection of a client that has stopped reading: its response holds memory and files.
 * Each byte that the client takes is progress.
 */
function limitStall({ raw, request }: FastifyReply, usualMs: number): void {
  const stallMs = request.routeConfig.stallMs ?? usualMs
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
