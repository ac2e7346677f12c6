/** Which requests get the same response: those of one session that are the same at the upstream. */
import { createHash } from 'node:crypto'
import type { UpstreamRequest } from '../proxy/call.ts'
import type { Live } from '../session/evaluate.ts'

/** Other in each request, without a say in the response. */
const tracing: ReadonlySet<string> = new Set(['x-request-id', 'traceparent', 'tracestate'])

/**
 * A digest, so that keys are short and hold no token.
 * @param scope the upstream; what two scopes answer is never the same
 * @param without headers that have no say
 */
export function copyKey(
  scope: string,
  { key, session }: Live,
  { method, path, headers, body }: UpstreamRequest,
  without: ReadonlySet<string> = tracing
): string {
  const names = Object.keys(headers).filter(name => !without.has(name))
  const { identity, source } = session
  const text = JSON.stringify([
    scope,
    key,
    source,
    identity.id,
    identity.roles,
    method,
    path,
    names.toSorted().map(name => [name, headers[name]])
  ])
  const digest = createHash('sha256').update(text)
  if (typeof body === 'string' || Buffer.isBuffer(body)) digest.update('\n').update(body)
  return digest.digest('base64url')
}

/** Of reads, the client's wishes about copies are no part of which response it is. */
export const readsWithout: ReadonlySet<string> = new Set([...tracing, 'cache-control', 'pragma'])
