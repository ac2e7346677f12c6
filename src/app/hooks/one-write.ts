import { ServerResponse } from 'node:http'

/** Longer bodies may wait for their reader, and are not copied. */
export const oneWriteBytes = 16 * 1024

/**
 * Sends a whole body together with the headers.
 * perf: 4 % of a signed-in request. Node joins only a text to the headers, and writes Latin-1, one
 * byte for each of its characters, faster than UTF-8.
 */
export class OneWriteResponse extends ServerResponse {
  override end(body?: unknown, encoding?: unknown, done?: unknown): this {
    const text = encoding == null ? latinOf(body) : undefined
    if (text === undefined) return super.end(body, encoding as BufferEncoding, done as () => void)
    return super.end(text, 'latin1', done as () => void)
  }
}

function latinOf(body: unknown): string | undefined {
  if (Buffer.isBuffer(body)) {
    return body.length > oneWriteBytes ? undefined : body.toString('latin1')
  }
  return typeof body === 'string' && Buffer.byteLength(body) === body.length ? body : undefined
}
