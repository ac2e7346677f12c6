/**
 * Translates failures of undici, Node and back-ends into our error codes. Their own messages may
 * name an address, so they only go to the log.
 */
import { type ErrorCode, GatewayError } from '../errors/errors.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { readJson } from '../json/body.ts'
import { readErrorBody } from '../json/error-body.ts'
import { isJson, type UpstreamResponse } from './response.ts'
import { overloaded } from '../limits/slots.ts'

const codes = new Map<string, ErrorCode>([
  ['ECONNREFUSED', 'upstream.refused'],
  ['ENOTFOUND', 'upstream.refused'],
  ['EAI_AGAIN', 'upstream.refused'],
  ['EHOSTUNREACH', 'upstream.refused'],
  ['EHOSTDOWN', 'upstream.refused'],
  ['ENETUNREACH', 'upstream.refused'],
  ['ENETDOWN', 'upstream.refused'],
  ['EPERM', 'upstream.refused'],
  ['EPROTO', 'upstream.refused'],
  ['ECONNRESET', 'upstream.reset'],
  ['EPIPE', 'upstream.reset'],
  ['UND_ERR_SOCKET', 'upstream.reset'],
  ['ETIMEDOUT', 'upstream.timeout.connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'upstream.timeout.connect'],
  ['UND_ERR_CLOSED', 'gateway.stopping'],
  ['UND_ERR_DESTROYED', 'gateway.stopping'],
  ['UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'request.malformed'],
  ['UND_ERR_INVALID_ARG', 'request.malformed']
])
/** This machine has no sockets left. */
const noSockets = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])
const ofTls = /CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/

/**
 * The GatewayError for a failed exchange. An invalid certificate counts as refused, an unreadable
 * response as invalid.
 */
export function upstreamError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const code = errorCodeOf(error)
  if (noSockets.has(code)) return overloaded(`no socket for the upstream: ${code}`, 'sockets')
  const unlisted = ofTls.test(code) ? 'upstream.refused' : 'upstream.invalid'
  return new GatewayError(codes.get(code) ?? unlisted, { cause: error })
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
 * The GatewayError for a response with an error status: keeps the status, and the message and field
 * errors of a JSON body that was small enough to be collected.
 */
export function responseError(
  { status, headers, body }: UpstreamResponse,
  format: UpstreamConfig['errors']
): GatewayError {
  let detail = {}
  if (Buffer.isBuffer(body) && isJson(headers)) {
    try {
      detail = readErrorBody(readJson(body, headers, errorBytes), format)
    } catch {}
  }
  return new GatewayError('upstream.error', { status, ...detail })
}
