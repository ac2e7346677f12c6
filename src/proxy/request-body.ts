/** A client's body on its way to an upstream: small ones collected first, others streamed and counted. */
import type { IncomingMessage } from 'node:http'
import { Transform, type Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import { adopt, pipe } from '../observability/emitters.ts'

/**
 * Collects a body of known length. The upstream is not called before it is whole, so that
 * a slow or broken client holds no upstream connection.
 */
export function readSmallBody (body: Readable, length: number, done: (error: GatewayError | null, bytes?: Buffer) => void): void {
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  let settled = false
  const finish = (error: GatewayError | null) => {
    if (settled) return
    settled = true
    if (error === null && at === length) done(null, bytes)
    else done(error ?? new GatewayError('request.malformed'))
  }
  body.on('data', (chunk: Buffer) => { at += chunk.copy(bytes, at) })
  body.once('end', () => finish(null))
  body.once('error', cause => finish(new GatewayError('request.malformed', { cause })))
  body.once('close', () => finish(new GatewayError('request.malformed')))
}

/** A body of unknown length, cut off with `request.too-large` where it grows beyond `maxBytes`. */
export function countedBody (body: Readable, maxBytes: number): Readable {
  let seen = 0
  const counter = adopt(new Transform({
    transform (chunk: Buffer, _encoding, done) {
      seen += chunk.length
      if (seen <= maxBytes) return done(null, chunk)
      // What is left is read and dropped, or the client would not see the answer.
      body.unpipe(counter)
      body.resume()
      done(new GatewayError('request.too-large'))
    }
  }))
  body.once('error', cause => counter.destroy(new GatewayError('request.malformed', { cause })))
  body.once('close', () => { if (!body.readableEnded) counter.destroy(new GatewayError('request.malformed')) })
  return pipe(body, counter)
}

/** Whether a part of a request's body has not arrived. (In the moment in which its head has, not even a request without one is complete.) */
export function isBodyPending ({ complete, headers }: IncomingMessage): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0')
}
