/**
 * The response of a back-end, and failures in its place: their own messages may name an address, so
 * they only go to the log.
 */
import { Readable } from 'node:stream'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { type ErrorCode, GatewayError } from '../errors/errors.ts'
import { decoded, tryJson } from '../json/body.ts'
import { readErrorBody } from '../json/error-body.ts'
import { overloaded } from '../limits/slots.ts'

export interface UpstreamResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  /** Whole, or still on its way. */
  readonly body: Buffer | Readable
}

export interface WholeResponse extends UpstreamResponse {
  readonly body: Buffer
}

type Headers = Readonly<UpstreamResponse['headers']>

/** Statuses that say that a back-end does not work, as a proxy in front of it does. */
export const failureStatuses: ReadonlySet<number> = new Set([502, 503, 504])

/** Statuses of responses that never have a body. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304
}

/** Nobody reads the rest of it. */
export function discard({ body }: UpstreamResponse): void {
  if (body instanceof Readable) body.destroy()
}

export function isJson(headers: Headers): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''))
}

/** Server-sent events: they never end, and each must be sent at once. */
export function isEventStream(headers: Headers): boolean {
  return /^text\/event-stream/i.test(String(headers['content-type'] ?? ''))
}

/** The GatewayError for a final response that no client could read; undefined for others. */
export function unreadable(status: number, headers: Headers): GatewayError | undefined {
  if (status < 200 || status > 599) return invalid(`status ${status}`)
  const coding = headers['transfer-encoding']
  // The header is not forwarded, so no client could decode another coding.
  if (coding === undefined || String(coding).toLowerCase() === 'chunked') return undefined
  return invalid('its transfer coding is not "chunked"')
}

export function invalid(reason: string): GatewayError {
  return new GatewayError('upstream.invalid', { cause: reason })
}

/** Nothing, packed, is a few bytes long; longer blanks may be packed too. */
const maxPackedBytes = 256
const maxBlanks = 64 * 1024
const blanks = /^(?:\xef\xbb\xbf)?[ \t\r\n]*$/

/** A part of a file. Others, such as PostgREST, also say 206 of a page of rows, which is whole. */
export function isPart({ status, headers }: UpstreamResponse): boolean {
  return status === 206 && /^bytes/i.test(String(headers['content-range'] ?? ''))
}

/** Whether a success holds no bytes, or only blanks, whatever its status. Not a part of a file. */
export function hasNoContent(response: UpstreamResponse): boolean {
  const { status, headers, body } = response
  if (!Buffer.isBuffer(body) || isPart(response)) return false
  if (status === 204 || status === 205 || body.length === 0) return true
  if (status >= 300) return false
  const encoding = headers['content-encoding']
  if (encoding === undefined) return isBlank(body)
  if (body.length > maxPackedBytes) return false
  try {
    return isBlank(decoded(body, encoding, maxBlanks))
  } catch {
    return false
  }
}

/** The first byte decides of nearly all bodies. */
function isBlank(bytes: Buffer): boolean {
  const [first = 0x20] = bytes
  return (first <= 0x20 || first === 0xef) && blanks.test(bytes.toString('latin1'))
}

/** By the codes of failures; the last are of TLS. Any other makes a response invalid. */
const codes: ReadonlyArray<readonly [RegExp, ErrorCode]> = [
  [/^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPERM|EPROTO)$/, 'upstream.refused'],
  [/^E(?:HOST|NET)(?:UNREACH|DOWN)$/, 'upstream.refused'],
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'upstream.reset'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'upstream.timeout.connect'],
  [/^UND_ERR_(?:CLOSED|DESTROYED)$/, 'gateway.stopping'],
  [/^UND_ERR_(?:REQ_CONTENT_LENGTH_MISMATCH|INVALID_ARG)$/, 'request.malformed'],
  [/CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/, 'upstream.refused']
]
/** This machine has no sockets left. */
const noSockets = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])

/** An invalid certificate counts as refused, an unreadable response as invalid. */
export function upstreamError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const code = errorCodeOf(error)
  if (noSockets.has(code)) return overloaded(`no socket for the upstream: ${code}`, 'sockets')
  const [, listed = 'upstream.invalid'] = codes.find(([pattern]) => pattern.test(code)) ?? []
  return new GatewayError(listed, { cause: error })
}

/** An AggregateError of a dual-stack connection attempt has no code of its own. */
function errorCodeOf(error: unknown): string {
  const { code, errors } = (error ?? {}) as { code?: unknown; errors?: unknown[] }
  if (typeof code === 'string') return code
  return Array.isArray(errors) ? errorCodeOf(errors[0]) : ''
}

/** Of an error's body only so much is read for its message. */
const errorBytes = 64 * 1024

/**
 * Keeps the status, and message and field errors of JSON that was small enough to be collected,
 * whatever its type is called: `http.Error` of Go makes it text.
 */
export function responseError(
  { status, headers, body }: UpstreamResponse,
  format: UpstreamConfig['errors']
): GatewayError {
  const error = Buffer.isBuffer(body) ? tryJson(body, headers, errorBytes) : undefined
  return new GatewayError('upstream.error', { status, ...readErrorBody(error, format) })
}
