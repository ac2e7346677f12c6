/** The last requests of all replicas as one list. */
import type { FastifyInstance } from 'fastify'
import { addRequestRoutes, type RequestsResponse } from '../../admin/requests.ts'
import {
  type FoundRequests,
  maxLast,
  type RequestQuery
} from '../../observability/recent-requests.ts'
import { isRecord } from '../../json/values.ts'
import type { Replies } from '../../services/replica-bus.ts'
import type { Operated } from '../operated.ts'

/** `console-gateway why` answers within a second, also where a replica is silent. */
const replicasMs = 700

export function addRecentRequests(
  app: FastifyInstance,
  { publicServer, ops: { bus } }: Pick<Operated, 'publicServer' | 'ops'>
): void {
  bus.serve('why', query => publicServer.findRequests(query as RequestQuery))
  addRequestRoutes(app, {
    find: async (query: RequestQuery) => merge(await bus.ask('why', query, replicasMs), query)
  })
}

/** A replica of another version may answer something else: its part is left out. */
function merge(
  { replies, silent, problem }: Replies,
  { last = maxLast }: RequestQuery
): RequestsResponse {
  const places = replies.flatMap(reply =>
    'value' in reply && isRecord(reply.value) && Array.isArray(reply.value['requests'])
      ? [{ place: { replica: reply.replica }, value: reply.value as unknown as FoundRequests }]
      : []
  )
  const requests = places
    .flatMap(({ place, value }) => value.requests.map(record => ({ ...record, ...place })))
    .toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
  return {
    requests: requests.slice(0, last),
    hasMore: requests.length > last || places.some(({ value }) => value.hasMore),
    kept: places.map(({ place, value }) => ({ ...value.kept, ...place })),
    silent: [...silent, ...replies.flatMap(reply => ('error' in reply ? [reply.replica] : []))],
    problem
  }
}
