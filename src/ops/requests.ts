import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { FoundRequests } from '../observability/failures.ts'
import { adviceOf } from '../observability/request-story.ts'
import { addRead, type Desk } from './routes.ts'
import { flag, list, name, object, optional, text, time } from './schemas.ts'

const query = object({
  id: optional(text('`X-Request-Id`.', { pattern: '^[A-Za-z0-9_.-]{1,64}$' })),
  status: optional(
    text('`failed`, `4xx` or `404`.', { pattern: '^(?:failed|[1-5]xx|[1-5][0-9]{2})$' })
  ),
  route: optional(name('Of the config.')),
  user: optional(name('Name or id of a user.')),
  last: optional(
    text('So many, at most 500; or 50.', { pattern: '^(?:[1-9][0-9]?|[1-4][0-9]{2}|500)$' })
  )
})

const answer = Type.Unsafe<FoundRequests>(
  object({
    requests: list(object({}), 'Newest first; docs/observability.md has their members.'),
    hasMore: flag({ description: 'Whether more fit.' }),
    oldestAt: optional(time),
    problem: optional(text('Why those of other replicas are missing.'))
  })
)

export function addRequestRoutes(ops: FastifyInstance, { failures }: Desk): void {
  addRead(ops, {
    path: '/requests',
    summary:
      'Requests that failed, were slow or changed something, with what to do about an error.',
    hint: 'status is failed, 4xx or 404, last a number up to 500: /requests?status=failed&last=20',
    query,
    answer,
    read: async ({ last = '50', ...wanted }) => {
      const found = await failures.find({ ...wanted, last: Number(last) })
      const requests = found.requests.map(each => ({ ...each, ...adviceOf(each.code) }))
      return { ...found, requests }
    }
  })
}
