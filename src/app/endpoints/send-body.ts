/** The last step of an answer whose body is whole. */
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply } from 'fastify'
import { limitStall } from '../hooks/stalled-readers.ts'

/** Larger ones are written from where they are; smaller ones cost less as one text with the header fields, in one write. */
const oneWriteBytes = 16 * 1024

/**
 * Sends it past Fastify's own way: what that does on sending is for cookies, which no route to an upstream sets, and for
 * bodies whose kind has to be found out.
 * @param body bytes, or text that is sent as UTF-8; not for HEAD, 204 or 304
 * @param more fields of this answer, in lower case; they stand before those of the reply
 */
export function sendBody(
  reply: FastifyReply,
  body: Buffer | string,
  more?: Readonly<Record<string, string | string[]>>
): void {
  const { raw } = reply
  const length = Buffer.byteLength(body)
  const fields = {
    ...reply.standardHeaders,
    'x-request-id': reply.request.id,
    ...reply.getHeaders(),
    ...more
  } as OutgoingHttpHeaders
  fields['content-length'] = length
  fields['content-type'] ??= 'application/octet-stream'
  // May throw, as a field of the upstream's may hold what no field can: until then an error can be told.
  raw.writeHead(raw.statusCode, fields)
  reply.hijack()
  if (length > oneWriteBytes) limitStall(reply)
  // Latin-1 is one byte for each unit of a string, as header fields are: bytes come out as they went in, and so does text in ASCII.
  if (typeof body === 'string') raw.end(body, length === body.length ? 'latin1' : 'utf8')
  else if (length <= oneWriteBytes) raw.end(body.toString('latin1'), 'latin1')
  else raw.end(body)
}
