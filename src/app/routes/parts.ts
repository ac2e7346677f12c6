/** Fetches the parts of a response, all at once. */
import type { FastifyRequest } from 'fastify'
import type { GatewayError } from '../../errors/errors.ts'
import type { PartResults } from '../../proxy/merge-parts.ts'
import { gather, type Parts } from '../../proxy/parts.ts'
import { reasonOf } from '../hooks/errors.ts'
import { forwardedForOf } from '../hooks/forwarded-for.ts'
import { liveOf } from '../hooks/session.ts'

/** @throws GatewayError as soon as a required part fails */
export async function fetchParts(
  request: FastifyRequest,
  parts: Parts,
  signal: AbortSignal
): Promise<PartResults> {
  const { trail, raw, server } = request
  const { headers, url: target = '' } = raw
  const use = { target, route: trail.route ?? '', user: liveOf(request)?.session.identity }
  const onMissing = ({ name }: { readonly name: string }, { code, cause }: GatewayError) => {
    server.gateway.counters.onMissingPart(trail.route, name)
    trail.addMissing(name)
    const why = cause === undefined ? '' : ` (${reasonOf(cause)})`
    trail.reason = `part ${name}: ${code}${why}`
  }
  const caller = forwardedForOf(request)
  return await gather(parts, { use, headers, caller, signal, trail, onMissing })
}
