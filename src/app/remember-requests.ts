/** The requests of a process, for `console-gateway why` and the operators' API. */
import type { FastifyRequest } from 'fastify'
import { RecentRequests, type RequestBounds } from '../observability/recent-requests.ts'
import { setUser } from './hooks/access-log.ts'

export function rememberRequests(bounds: RequestBounds): RecentRequests<FastifyRequest> {
  return new RecentRequests(bounds, setUser)
}
