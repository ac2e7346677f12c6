/** Sends a response whose body is complete. */
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import { limitStall } from '../hooks/stalled-readers.ts'

/**
 * A smaller body costs less as one text with the headers, in one write; a larger one is not copied.
 */
const oneWriteBytes = 16 * 1024

/**
 * Bypasses Fastify's sending, which is for cookies, which no route to an upstream sets, and for
 * bodies of unknown type.
 * @param body bytes, or text that is sent as UTF-8; not for HEAD, 204 or 304
 * @param more headers of this response, in lower case; they win over those of the reply
 */
export function sendBody(
  reply: FastifyReply,
  body: Buffer | string,
  more?: Readonly<Record<string, string | string[]>>
): void {
  const { raw, request } = reply
  const length = Buffer.byteLength(body)
  const headers = {
    ...reply.standardHeaders,
    'x-request-id': request.id,
    ...reply.getHeaders(),
    ...more
  } as OutgoingHttpHeaders
  headers['content-length'] = length
  headers['content-type'] ??= 'application/octet-stream'
  // Throws when an upstream's header holds characters that Node refuses. Before `hijack`, so that
  // the error can be sent.
  raw.writeHead(raw.statusCode, headers)
  request.trail.sent = length
  reply.hijack()
  if (length > oneWriteBytes) limitStall(reply)
  // Latin-1 writes one byte for each unit of a string, as in headers: bytes and ASCII text stay the
  // same.
  if (typeof body === 'string') raw.end(body, length === body.length ? 'latin1' : 'utf8')
  else if (length <= oneWriteBytes) raw.end(body.toString('latin1'), 'latin1')
  else raw.end(body)
}
