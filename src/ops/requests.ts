/** Requests of all replicas that failed, were slow or changed something. */
import type { FastifyInstance } from 'fastify'
import errorAdvice from '../errors/advice.json' with { type: 'json' }
import { errorKinds } from '../errors/errors.ts'
import type { KeptRequest, RequestQuery } from '../observability/failures.ts'
import type { Desk } from './desk.ts'
import { addRead } from './routes.ts'
import { requestParams, requestsAnswer, requestsQuery } from './schemas.ts'

export function addRequestRoutes(ops: FastifyInstance, { failures }: Desk) {
  const find = async (query: RequestQuery) => await failures.find(query)
  addRead(ops, {
    path: '/requests',
    summary: 'Requests that failed, were slow or changed something, newest first.',
    hint: 'status is failed, 4xx or 404, last a number up to 500: /requests?status=failed&last=20',
    query: requestsQuery,
    answer: requestsAnswer,
    read: async ({ last = '50', ...query }) => await find({ ...query, last: Number(last) })
  })
  addRead(ops, {
    path: '/requests/:id',
    summary: 'All requests of one id, each with what to do about its error.',
    hint: 'A request id has up to 64 letters, digits, and _ . -',
    params: requestParams,
    answer: requestsAnswer,
    read: async ({ id }) => {
      const found = await find({ id })
      return { ...found, requests: found.requests.map(withAdvice) }
    }
  })
  return find
}

function withAdvice(request: KeptRequest): KeptRequest {
  const { code } = request
  // A replica of another version may have codes that this one does not know.
  if (code === undefined || !Object.hasOwn(errorKinds, code)) return request
  return Object.assign({}, request, { message: errorKinds[code].en, advice: errorAdvice[code] })
}
