/** `/ops/api/requests`: requests of all replicas that failed, were slow or changed something. */
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import {
  type FoundRequests,
  type KeptRequest,
  maxLast,
  type RequestQuery
} from '../observability/failures.ts'
import errorAdvice from '../errors/advice.json' with { type: 'json' }
import { errorKinds } from '../errors/errors.ts'
import { addOpsScope } from './api.ts'

interface Options {
  readonly find: (query: RequestQuery) => Promise<FoundRequests>
}

const requestsQuery = Type.Object({
  status: Type.Optional(
    Type.String({
      pattern: '^(?:failed|[1-5]xx|[1-5][0-9]{2})$',
      description: '`failed`, `4xx` or `404`.'
    })
  ),
  route: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  user: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: 'Name or id of a user.' })
  ),
  last: Type.String({
    pattern: '^[1-9][0-9]{0,2}$',
    default: '50',
    description: 'The newest so many; at most 500.'
  })
})

const idParams = Type.Object({
  id: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$', description: '`X-Request-Id`.' })
})

export function addRequestRoutes(ops: FastifyInstance, { find }: Options): void {
  addOpsScope(ops, scope => {
    scope.get<{ Querystring: Static<typeof requestsQuery> }>(
      '/requests',
      {
        schema: {
          summary: 'Requests that failed, were slow or changed something, newest first.',
          querystring: requestsQuery
        },
        schemaErrorFormatter: malformed(
          'status is failed, 4xx or 404, last a number up to 500: ' +
            '/requests?status=failed&last=20'
        )
      },
      async ({ query: { last, ...query } }) =>
        await find({ ...query, last: Math.min(Number(last), maxLast) })
    )
    scope.get<{ Params: Static<typeof idParams> }>(
      '/requests/:id',
      {
        schema: {
          summary: 'All requests of one id, each with what to do about its error.',
          params: idParams
        },
        schemaErrorFormatter: malformed('A request id has up to 64 letters, digits, and _ . -')
      },
      async ({ params: { id } }) => {
        const response = await find({ id })
        return { ...response, requests: response.requests.map(withAdvice) }
      }
    )
  })
}

function withAdvice(request: KeptRequest) {
  const { code } = request
  // A replica of another version may have codes that this one does not know.
  if (code === undefined || !Object.hasOwn(errorKinds, code)) return request
  return { ...request, message: errorKinds[code].en, advice: errorAdvice[code] }
}
