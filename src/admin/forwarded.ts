/**
 * A request that the primary has checked and a worker answers. The operator travels beside the
 * request, never in a header: a client could write one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'
import { clientAddress } from '../app/hooks/address.ts'
import { GatewayError } from '../errors.ts'
import type { Operator } from './operator.ts'

export interface Forwarded {
  /** Undefined on open paths. */
  readonly operator?: Operator | undefined
  readonly operatorSession?: string | undefined
  readonly requestId: string
  readonly address: string
}

export const forwarded = new AsyncLocalStorage<Forwarded>()

/** A hook for a worker's routes: the operator is whom the primary has found. */
export async function takeForwarded(request: FastifyRequest): Promise<void> {
  const from = forwarded.getStore()
  request.operator = from?.operator
  request.operatorSession = from?.operatorSession
  request.address = from?.address
  const isOpen = request.routeOptions.config.isOpen === true
  if (request.operator === undefined && !isOpen) throw new GatewayError('ops.secret')
}

/** In the primary: what a worker has to know. */
export function forwardedOf(request: FastifyRequest): Forwarded {
  const { operator, operatorSession, id: requestId } = request
  return { operator, operatorSession, requestId, address: clientAddress(request) }
}
