/** Fetches the parts of a response; they are aborted when its request ends. */
import type { FastifyReply } from 'fastify'
import type { GatewayError } from '../../errors.ts'
import { reasonOf } from '../hooks/errors.ts'
import { forwardedForOf, type ForwardedHost } from '../hooks/forwarded-for.ts'
import type { PartResults } from '../../proxy/merge-parts.ts'
import { gather } from '../../proxy/parts.ts'
import type { Shaping } from './shaped.ts'

export type MergingShaping = Shaping & Required<Pick<Shaping, 'parts'>>

export interface PartsOptions {
  readonly forwardedHost: ForwardedHost
  readonly countMissing: (route: string, part: string) => void
}

/** Fetches all parts at once. */
export function fetchParts(
  reply: FastifyReply,
  route: string,
  shaping: MergingShaping,
  { forwardedHost, countMissing }: PartsOptions
): Promise<PartResults> {
  const { request } = reply
  const end = new AbortController()
  reply.raw.once('close', () => end.abort())
  if (reply.raw.closed) end.abort()
  const onMissing = ({ name }: { readonly name: string }, { code, cause }: GatewayError) => {
    countMissing(route, name)
    request.trail.addMissing(name)
    const why = cause === undefined ? '' : ` (${reasonOf(cause)})`
    request.trail.reason = `part ${name}: ${code}${why}`
  }
  return gather(shaping.parts, {
    target: request.raw.url ?? '',
    headers: request.raw.headers,
    caller: forwardedForOf(request, forwardedHost),
    signal: end.signal,
    trail: request.trail,
    onMissing
  })
}
