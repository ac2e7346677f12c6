/** Ends the connection of a client that has stopped reading: its answer holds memory and files. */
import type { FastifyInstance, FastifyReply } from 'fastify'

/** @param stallMs how long an answer may make no progress, where its route says nothing else */
export function addStalledReaders(app: FastifyInstance, stallMs: number): void {
  app.decorateReply('stallMs', { getter: () => stallMs })
  app.addHook('onSend', function limitStreams(_request, reply, payload, done) {
    if (typeof (payload as { pipe?: unknown } | null)?.pipe === 'function') limitStall(reply)
    done()
  })
}

/** For answers that do not fit into one write. Each byte that the client takes is progress. */
export function limitStall(reply: FastifyReply): void {
  const { raw, request } = reply
  raw.setTimeout(request.routeOptions.config.stallMs ?? reply.stallMs, () => {
    // With nothing left to take, not the client is slow but the response.
    if ((raw.socket?.writableLength ?? 0) > 0) raw.socket?.destroy()
  })
}
