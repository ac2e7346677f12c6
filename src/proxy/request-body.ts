/** Reads a client's body for an upstream: small ones are collected, larger ones streamed. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'

/** A body that is streamed, with the bytes of it that came so far. */
export type Upload = Readable & { received: number }

/** Bodies up to this size are collected, and sent in one write: below it a stream costs more. */
export const maxCollectedBytes = 64 * 1024
const firstBytes = 4096

/** Settles when it is complete or large: a slow client holds no connection. @throws GatewayError */
export async function readBody(
  body: Readable,
  length: number | undefined,
  { collectBytes, maxBytes }: Readonly<Record<'collectBytes' | 'maxBytes', number>>
): Promise<Buffer | Upload> {
  if (length !== undefined && length > collectBytes) {
    body.pause()
    return relayed(body, [], maxBytes)
  }
  let bytes: Buffer = Buffer.allocUnsafe(length ?? Math.min(firstBytes, collectBytes))
  let size = 0
  return await new Promise((resolve, reject) => {
    const fail = (error: GatewayError) => {
      leave()
      // The rest is read and dropped: otherwise the client would not read the response.
      adopt(body).resume()
      reject(error)
    }
    const endWatch = watchRate(body, () => fail(new GatewayError('request.timeout')))
    const onData = (chunk: Buffer) => {
      const needed = size + chunk.length
      if (needed > maxBytes) return fail(new GatewayError('request.too-large'))
      if (needed > collectBytes) {
        leave()
        body.pause()
        return resolve(relayed(body, [bytes.subarray(0, size), chunk], maxBytes))
      }
      if (needed > bytes.length) bytes = grown(bytes, needed, collectBytes)
      size += chunk.copy(bytes, size)
    }
    const onEnd = () => {
      const isCut = length !== undefined && size !== length
      if (isCut) return fail(new GatewayError('request.malformed'))
      leave()
      resolve(bytes.subarray(0, size))
    }
    const onError = (cause: unknown) => fail(new GatewayError('request.malformed', { cause }))
    const onClose = () => fail(new GatewayError('request.malformed'))
    function leave(): void {
      endWatch()
      body.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
    }
    body.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })
}

function grown(bytes: Buffer, needed: number, maxBytes: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(maxBytes, Math.max(needed, 2 * bytes.length)))
  bytes.copy(larger)
  return larger
}

/**
 * Not the request itself: a sender destroys the stream after a failure, and a destroyed request
 * gets no response. The rest is read and dropped: else the client would not read the response.
 */
function relayed(body: Readable, start: readonly Buffer[], maxBytes: number): Upload {
  const relay = adopt(
    new Readable({
      highWaterMark: 64 * 1024,
      read: () => {
        body.resume()
      },
      destroy: (error, done) => {
        body.off('data', onData).resume()
        done(error)
      }
    })
  ) as Upload
  relay.received = 0
  function onData(chunk: Buffer): void {
    relay.received += chunk.length
    if (relay.received > maxBytes) relay.destroy(new GatewayError('request.too-large'))
    else if (!relay.push(chunk)) body.pause()
  }
  body.once('end', () => relay.push(null))
  body.once('error', cause => relay.destroy(new GatewayError('request.malformed', { cause })))
  body.once('close', () => {
    if (!body.readableEnded) relay.destroy(new GatewayError('request.malformed'))
  })
  for (const chunk of start) onData(chunk)
  body.on('data', onData)
  return relay
}

const minBytesPerSecond = 1024
const windowMs = 10_000

/** Time in which the upstream does not read does not count. @returns ends the watch */
export function watchRate(body: Readable, onSlow: () => void): () => void {
  const { complete, socket } = body as Partial<IncomingMessage>
  if (complete !== false || socket === undefined) return () => {}
  let before = socket.bytesRead
  let wasHeld = false
  const onPause = () => {
    wasHeld = true
  }
  const look = () => {
    if ((body as IncomingMessage).complete || body.destroyed || socket.destroyed) return end()
    const bytes = socket.bytesRead - before
    if (bytes < (minBytesPerSecond * windowMs) / 1000 && !wasHeld && !body.isPaused()) {
      end()
      return onSlow()
    }
    before += bytes
    wasHeld = body.isPaused()
  }
  const timer = setInterval(look, windowMs).unref()
  function end() {
    clearInterval(timer)
    body.off('pause', onPause).off('close', end)
  }
  body.on('pause', onPause).once('close', end)
  return end
}

export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** (`complete` is false just after the head, even without a body.) */
export function isBodyPending(request: IncomingMessage): boolean {
  return !request.complete && announcesBody(request)
}
