/**
 * What the operators' API takes and answers of users, limits, lockouts, maintenance and requests.
 * The pages and the commands use the types.
 */
import { type Static, type TSchema, type TStringOptions, Type } from 'typebox'
import { type Closing, timePattern } from '../config/schema/maintenance.ts'
import type { Use } from '../limits/highest-use.ts'
import type { FoundRequests } from '../observability/failures.ts'

const maxNameLength = 255
const maxListed = 2000

export const { Object: object, Optional: optional, Union: union } = Type
export const text = (description = '', more: TStringOptions = {}) =>
  Type.String({ ...more, ...(description !== '' && { description }) })
export const time = text('', { format: 'date-time' })
export const number = (description: string) => Type.Number({ description })
export const count = Type.Integer({ minimum: 0 })
export const list = <T extends TSchema>(items: T, description = '') =>
  Type.Immutable(Type.Array(items, description === '' ? {} : { description }))
const name = (description: string) => text(description, { minLength: 1, maxLength: maxNameLength })

/** Whether the operator accepts that most sessions of file users end: only `true` does. */
export const reloadBody = object({ yes: optional(Type.Unknown()) })

// Users and their sessions

const signedIn = object({ source: text(), id: text(), username: text() })

/** The members by which an operator names a user. */
const user = {
  user: optional(text('Name or id.', { minLength: 1 })),
  by: optional(Type.Enum(['id', 'name'], { description: 'What `user` is; either without it.' })),
  source: optional(text('The credential source; any without it.'))
}

export const sessionsQuery = object({
  ...user,
  search: optional(text('Without `user`: a part of name or id.', { maxLength: maxNameLength })),
  size: optional(
    text('Without `user`: so many users, or 50.', { pattern: '^([1-9][0-9]{0,2}|1000)$' })
  )
})

const session = object({
  id: text(),
  user: text(),
  userId: text(),
  source: text(),
  startedAt: time,
  lastUsedAt: time,
  idleIn: number('Seconds until it ends without use.'),
  absoluteIn: number('Seconds until it ends in any case.'),
  address: text(),
  agent: text()
})

const unclear = {
  candidates: optional(list(signedIn, 'Several users fit: name one of them.')),
  near: optional(list(signedIn, 'Nobody fits, but would with a name as id, or an id as name.'))
}

export const sessionsAnswer = object({
  sessions: list(session, 'Those of one user stand together.'),
  user: optional(text()),
  ...unclear,
  users: optional(number('Signed in, whether they fit or not.')),
  isWhole: optional(Type.Boolean({ description: 'Whether nobody was left out.' }))
})

export const closeSessionsBody = object({
  ...user,
  id: optional(text('One session of the user; all without it.')),
  everyone: optional(Type.Boolean({ description: 'In place of a user.' }))
})

export const closedAnswer = object({
  closed: union([count, Type.Literal('everyone')]),
  of: optional(signedIn),
  ...unclear
})

const anySource = 'At this credential source; at any without it.'
export const blockedName = object({
  name: name('User name or id.'),
  source: optional(text(anySource, { maxLength: maxNameLength }))
})

const tenYearsMs = 3650 * 86_400_000
const forMs = 'Milliseconds; until unblocked without it.'
export const blockBody = object({
  ...blockedName.properties,
  forMs: optional(Type.Integer({ minimum: 1000, maximum: tenYearsMs, description: forMs }))
})

const block = object({ name: text(), source: optional(text()), until: optional(time) })
export const blocksAnswer = object({ blocked: list(block) })
export const blockAnswer = object({ ...block.properties, closed: count })
export const unblockAnswer = object({ unblocked: count })

// Limits and lockouts

export const callerSchema = object({ caller: name('An IP address, or the id or name of a user.') })

const mode = Type.Enum(['enforce', 'shadow', 'off'])
const use = object({ used: Type.Integer(), caller: text() })

const limitRow = object({
  limit: text(),
  mode,
  by: union([text(), list(text())]),
  max: number('So many at once; `windowMs` later all of them are free.'),
  windowMs: Type.Integer(),
  hour: optional(Type.Unsafe<Use | undefined>(use)),
  day: optional(Type.Unsafe<Use | undefined>(use)),
  over: list(text(), 'Callers that were over it in this hour, the last first.'),
  nearest: list(use, 'Those of this hour that came nearest, the nearest first.')
})

const callerLimit = object({
  limit: text(),
  of: text('Tells counts of one caller apart: session, address, sign-in.'),
  mode,
  max: Type.Integer(),
  used: Type.Integer(),
  exceeded: Type.Boolean(),
  retryMs: number('Until one more is allowed.'),
  resetMs: number('Until all is free again.')
})

export const limitsAnswer = object({ limits: list(limitRow) })
export const callerAnswer = object({ limits: list(callerLimit) })
export const resetAnswer = object({ reset: count })

export const lockoutsOf = object({
  account: optional(text('', { minLength: 1 })),
  address: optional(text('', { format: 'ip' }))
})

const lockout = object({
  kind: text(),
  account: optional(text()),
  address: optional(text()),
  until: time
})
export const lockoutsAnswer = object({ lockouts: list(lockout), total: count })
export const liftAnswer = object({ lifted: count })

// Maintenance

const written = (description: string) => text(description, { pattern: timePattern })
const routeNames = (description: string) =>
  optional(Type.Array(text('', { maxLength: maxNameLength }), { maxItems: maxListed, description }))

/** As `maintenance` of routes.yaml, but its end is required. */
export const maintenanceBody = object(
  {
    from: optional(written('The beginning; at once without it.')),
    until: written('The end, such as 2026-12-01T06:00Z.'),
    routes: routeNames('The routes to close; all without it. `login` closes sign-in.'),
    methods: optional(
      Type.Array(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), {
        maxItems: 5,
        description: 'The methods to close; all without it.'
      })
    ),
    allowRoles: optional(Type.Array(name('Its users can continue to work.'), { maxItems: 100 })),
    message: optional(text('The message for users.', { minLength: 1, maxLength: 500 }))
  },
  // A misspelt `routes` would close them all.
  { additionalProperties: false }
)

export const maintenanceEndBody = object({
  routes: routeNames('The routes to open; all that operators closed without it.')
})

const closing = Type.Unsafe<Closing>(
  object(
    { ...maintenanceBody.properties, until: optional(time) },
    { description: 'As in routes.yaml.' }
  )
)

export const maintenanceAnswer = object({
  shared: Type.Boolean({ description: 'Whether it is in force at all replicas, within a second.' }),
  info: optional(text()),
  file: union([closing, Type.Null()]),
  operators: list(Type.Intersect([closing, object({ author: text(), since: time })]))
})

// Requests

export const requestsQuery = object({
  status: optional(
    text('`failed`, `4xx` or `404`.', { pattern: '^(?:failed|[1-5]xx|[1-5][0-9]{2})$' })
  ),
  route: optional(name('Of the config.')),
  user: optional(name('Name or id of a user.')),
  last: optional(
    text('So many, at most 500; or 50.', { pattern: '^(?:[1-9][0-9]?|[1-4][0-9]{2}|500)$' })
  )
})

export const requestParams = object({
  id: text('`X-Request-Id`.', { pattern: '^[A-Za-z0-9_.-]{1,64}$' })
})

export const requestsAnswer = Type.Unsafe<FoundRequests>(
  object({
    requests: list(object({}), 'Newest first; docs/observability.md has their members.'),
    hasMore: Type.Boolean({ description: 'Whether more fit.' }),
    oldestAt: optional(time),
    problem: optional(text('Why those of other replicas are missing.'))
  })
)

export type NamedUser = Pick<Static<typeof sessionsQuery>, 'user' | 'by' | 'source'>
export type SessionsAnswer = Static<typeof sessionsAnswer>
export type ShownSession = Static<typeof session>
export type ClosedAnswer = Static<typeof closedAnswer>
export type BlockJson = Static<typeof block>
export type LimitRow = Static<typeof limitRow>
export type CallerLimit = Static<typeof callerLimit>
export type LockoutsOf = Static<typeof lockoutsOf>
export type LockoutsAnswer = Static<typeof lockoutsAnswer>
export type LockoutJson = Static<typeof lockout>
export type MaintenanceBody = Static<typeof maintenanceBody>
export type ShownMaintenance = Static<typeof maintenanceAnswer>
