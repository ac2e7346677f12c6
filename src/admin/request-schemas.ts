/** Bodies and queries of the operators' endpoints: one schema each, which validates and types. */
import { Type, type Static } from 'typebox'
import { timePattern } from '../config/schema/maintenance.ts'

const maxNameLength = 255
const maxListed = 2000

/** Whether the operator accepts that most sessions of file users end: only `true` does. */
const yes = Type.Optional(Type.Unknown())

export const planQuery = Type.Object({
  balancerMs: Type.String({ pattern: '^[0-9]{1,12}$', default: '60000' })
})
export const reloadBody = Type.Object({ yes })

/** An IP address, or the id or name of a user. */
export const callerSchema = Type.Object({
  caller: Type.String({ minLength: 1, maxLength: maxNameLength })
})

export const operatorSignInBody = Type.Object({
  username: Type.String({ minLength: 1, maxLength: maxNameLength }),
  password: Type.String({ minLength: 1, maxLength: 1024 })
})

export const lockoutsOf = Type.Object({
  account: Type.Optional(Type.String({ minLength: 1 })),
  address: Type.Optional(Type.String({ format: 'ip' }))
})

/** As `maintenance` of routes.yaml, but its end is required. */
export const maintenanceBody = Type.Object({
  from: Type.Optional(
    Type.String({ pattern: timePattern, description: 'The beginning; at once without it.' })
  ),
  until: Type.String({ pattern: timePattern, description: 'The end, such as 2026-12-01T06:00Z.' }),
  routes: Type.Optional(
    Type.Array(Type.String({ maxLength: maxNameLength }), {
      maxItems: maxListed,
      description: 'The routes to close; all of routes.yaml without it. `login` closes sign-in.'
    })
  ),
  methods: Type.Optional(
    Type.Array(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), {
      maxItems: 5,
      description: 'The methods to close; all without it.'
    })
  ),
  allowRoles: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: maxNameLength }), {
      maxItems: 100,
      description: 'Users with one of these roles can continue to work.'
    })
  ),
  message: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'The message for users.' })
  )
})

export const maintenanceEndBody = Type.Object({
  routes: Type.Optional(
    Type.Array(Type.String({ maxLength: maxNameLength }), {
      maxItems: maxListed,
      description: 'The routes to open; all that operators closed without it.'
    })
  )
})

/** The members by which an operator names a user. */
const user = {
  user: Type.String({ minLength: 1 }),
  /** Whether `user` is an id or a user name; either without it. */
  by: Type.Optional(Type.Union([Type.Literal('id'), Type.Literal('name')])),
  source: Type.Optional(Type.String())
}
const namedUser = Type.Object(user)
const noUser = {
  user: Type.Optional(Type.Never()),
  by: Type.Optional(Type.Never()),
  source: Type.Optional(Type.Never())
}
/** Pages of all sessions, up to 1,000 a page. */
const page = {
  search: Type.Optional(
    Type.String({
      maxLength: maxNameLength,
      description: 'A part of the user’s name or id.'
    })
  ),
  size: Type.Optional(Type.String({ pattern: '^([1-9][0-9]{0,2}|1000)$' })),
  after: Type.Optional(
    Type.String({ maxLength: 4 * maxNameLength, description: '`next` of the page before.' })
  )
}
export const blockedName = Type.Object({
  name: Type.String({ minLength: 1, maxLength: maxNameLength, description: 'User name or id.' }),
  source: Type.Optional(
    Type.String({
      maxLength: maxNameLength,
      description: 'At this credential source; at any without it.'
    })
  )
})
export const blockBody = Type.Object({
  ...blockedName.properties,
  forMs: Type.Optional(
    Type.Integer({
      minimum: 1000,
      maximum: 3650 * 86_400_000,
      description: 'Milliseconds; until unblocked without it.'
    })
  )
})
export const sessionsQuery = Type.Union([namedUser, Type.Object({ ...noUser, ...page })])
export const closeSessionsBody = Type.Union([
  Type.Object({
    ...user,
    /** One session of the user; all of them without it. */
    id: Type.Optional(Type.String()),
    everyone: Type.Optional(Type.Unsafe<unknown>({ not: { const: true } }))
  }),
  Type.Object({ ...noUser, everyone: Type.Literal(true) })
])

export type NamedUser = Static<typeof namedUser>
export type NamedCaller = Static<typeof callerSchema>
export type MaintenanceBody = Static<typeof maintenanceBody>
export type LockoutsOf = Static<typeof lockoutsOf>
