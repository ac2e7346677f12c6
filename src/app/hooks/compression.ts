/** Compresses responses (`server.compress`). */
import { constants } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

/** As fast as gzip, and smaller; the default takes ten times as long. */
const quality = 4

export async function addCompression(app: FastifyInstance): Promise<void> {
  if (!app.gateway.config.gateway.server.compress) return
  // Imported only where config asks for it.
  await app.register(import('@fastify/compress'), {
    encodings: ['br', 'gzip'],
    threshold: 1024,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: quality } },
    // Events have to be sent at once.
    customTypes: /^text\/(?!event-stream)|[/+](?:json|xml|javascript|wasm)(?:;|$)/
  })
}
