/** What undici and Node call a failure on the way to a back-end, in our codes. No message of theirs, which may name an address, goes further than the log. */
import { type ErrorCode, GatewayError } from '../errors.ts'

const codes: Readonly<Record<string, ErrorCode>> = {
  ECONNREFUSED: 'upstream.refused',
  ENOTFOUND: 'upstream.refused',
  EAI_AGAIN: 'upstream.refused',
  EHOSTUNREACH: 'upstream.refused',
  ENETUNREACH: 'upstream.refused',
  EADDRNOTAVAIL: 'upstream.refused',
  ENOENT: 'upstream.refused',
  EPROTO: 'upstream.refused',
  ECONNRESET: 'upstream.reset',
  EPIPE: 'upstream.reset',
  UND_ERR_SOCKET: 'upstream.reset',
  UND_ERR_CLOSED: 'upstream.reset',
  UND_ERR_DESTROYED: 'upstream.reset',
  ETIMEDOUT: 'upstream.timeout',
  UND_ERR_CONNECT_TIMEOUT: 'upstream.timeout',
  UND_ERR_HEADERS_TIMEOUT: 'upstream.timeout',
  UND_ERR_BODY_TIMEOUT: 'upstream.timeout',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'request.malformed',
  UND_ERR_INVALID_ARG: 'request.malformed'
}

/** The GatewayError for whatever broke an exchange. A certificate that does not hold counts as refused; what cannot be parsed as invalid. */
export function upstreamError (error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const code = errorCodeOf(error)
  const known = (Object.hasOwn(codes, code) ? codes[code] : undefined) ?? (/CERT|SIGNATURE|SELF_SIGNED|ERR_TLS|ERR_SSL/.test(code) ? 'upstream.refused' : 'upstream.invalid')
  return new GatewayError(known, { cause: error })
}

/** An AggregateError of a dual-stack dial has no code of its own. */
function errorCodeOf (error: unknown): string {
  const { code, errors } = (error ?? {}) as { code?: unknown, errors?: unknown[] }
  if (typeof code === 'string') return code
  return Array.isArray(errors) ? errorCodeOf(errors[0]) : ''
}
