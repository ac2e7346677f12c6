/** Fetches the parts of a response, all at once. */
import type { FastifyRequest } from 'fastify'
import type { GatewayError } from '../../errors.ts'
import type { PartResults } from '../../proxy/merge-parts.ts'
import { gather, type Parts } from '../../proxy/parts.ts'
import { reasonOf } from '../hooks/errors.ts'
import { forwardedForOf, type ForwardedHost } from '../hooks/forwarded-for.ts'

export interface PartsOptions {
  readonly forwardedHost: ForwardedHost
  readonly countMissing: (route: string, part: string) => void
}

/** @throws GatewayError as soon as a required part fails */
export async function fetchParts(
  request: FastifyRequest,
  route: string,
  { parts, signal }: { readonly parts: Parts; readonly signal: AbortSignal },
  { forwardedHost, countMissing }: PartsOptions
): Promise<PartResults> {
  const { trail, raw } = request
  const onMissing = ({ name }: { readonly name: string }, { code, cause }: GatewayError) => {
    countMissing(route, name)
    trail.addMissing(name)
    const why = cause === undefined ? '' : ` (${reasonOf(cause)})`
    trail.reason = `part ${name}: ${code}${why}`
  }
  const caller = forwardedForOf(request, forwardedHost)
  const { headers, url: target = '' } = raw
  return await gather(parts, { target, headers, caller, signal, trail, onMissing })
}
