/** Who asks, as upstreams are told. */
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../proxy/headers.ts'
import { clientAddress } from './address.ts'
import { liveSession } from './session.ts'

/** @param hosts those that config lists: no other is passed on */
export function callerOf (request: FastifyRequest, hosts: readonly string[]): Caller {
  return {
    address: clientAddress(request),
    // Behind a trusted proxy it is a field's text, and may be anything.
    protocol: request.protocol === 'https' ? 'https' : 'http',
    host: hosts.length > 0 ? request.raw.headers.host : undefined,
    requestId: request.id,
    session: liveSession(request)
  }
}
