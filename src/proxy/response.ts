/** The response of a back-end, and what its head says of it. */
import { Readable } from 'node:stream'
import { GatewayError } from '../errors/errors.ts'
import { decoded } from '../json/coding.ts'

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

export function isWhole(response: UpstreamResponse): response is WholeResponse {
  return Buffer.isBuffer(response.body)
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
  return new GatewayError('upstream.invalid', { cause: new Error(reason) })
}

/** Nothing, packed, is a few bytes long; longer blanks may be packed too. */
const maxPackedBytes = 256
const maxBlanks = 64 * 1024
const blanks = /^(?:\xef\xbb\xbf)?[ \t\r\n]*$/

/**
 * Whether a successful response has no content: that is what holds no bytes, or only blanks,
 * whatever its status. Not of 206, a part of something.
 */
export function hasNoContent({ status, headers, body }: UpstreamResponse): boolean {
  if (!Buffer.isBuffer(body)) return false
  if (status === 204 || status === 205 || body.length === 0) return status !== 206
  if (status === 206 || status >= 300) return false
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
