/** `answer`: the body of a response as config writes it, with names that the session fills in. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

/** None is a credential or the id of a session. */
export const userNames = [
  'id',
  'username',
  'name',
  'roles',
  'role',
  'permissions',
  'profile'
] as const
const ofSession = ['access', 'token', 'refreshToken'] as const
const times = ['issuedAt', 'idleEndsAt', 'absoluteEndsAt', 'expiresIn'] as const
export const sessionNames = [...userNames, ...ofSession, ...times] as const
export type SessionName = (typeof sessionNames)[number]

const placeholders = sessionNames.map(name => `\`{${name}}\``)

const answer = {
  json: s.may.anything(
    'The value. A text that is exactly `{name}` becomes that value of the session, with its ' +
      `type: ${placeholders.join(', ')}, \`{profile.MEMBER}\`. Default: null.`,
    { examples: [{ accessToken: '{token}', userId: '{id}', roles: '{roles}' }] }
  ),
  byRole: s.may.pairs(
    'Values by role, in place of `json`. The first that a user has wins; whole numbers go first.',
    Type.Unknown(),
    { examples: [{ admin: ['*:*:*'], user: [] }] }
  ),
  inEnvelope: s.may.oneOf('Under `data` (default), beside code and message, or the whole body.', [
    'data',
    'flat',
    'none'
  ])
}

export const answerSchema = (description: string) => s.optional(description, answer)

export const routeAnswerSchema = s.closed('The response. A public route has no session’s names.', {
  ...answer,
  status: s.may.status('The status. Default: 200.', { minimum: 200 })
})

export type AnswerConfig = NonNullable<Static<ReturnType<typeof answerSchema>>>
export type RouteAnswerConfig = Static<typeof routeAnswerSchema>

/** The inner text of a value that is exactly `{…}`. */
export function placeholderOf(value: unknown): string | undefined {
  return typeof value === 'string' ? /^\{([^{}]+)\}$/.exec(value)?.[1] : undefined
}

/** Undefined for a name that is not in the list. */
export function sessionNameOf(placeholder: string) {
  const [name = '', ...path] = placeholder.split('.')
  const known = sessionNames.find(each => each === name)
  if (known === undefined) return undefined
  if (path.length > 0 && (name !== 'profile' || path.includes(''))) return undefined
  return { name: known, path }
}
