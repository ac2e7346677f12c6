/** JSON Schemas of the gateway's own responses: the current user, sign-in, sessions. */
import type { JsonSchema } from '../contract/schema.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { loginBody } from '../config/schema/request-bodies.ts'
import { errorKinds } from '../errors.ts'
import { type Members, outcome, record, text } from './envelope-schemas.ts'

const whole = { type: 'integer' }

export const errorCodeSchema: JsonSchema = {
  type: 'string',
  description: 'Stable: a code never changes its meaning.',
  enum: Object.keys(errorKinds)
}

const optionalUser = {
  email: text,
  signature: text,
  title: text,
  group: text,
  phone: text,
  address: text,
  country: text,
  tags: { type: 'array', items: {} },
  notifyCount: { type: 'number' },
  unreadCount: { type: 'number' },
  geographic: { type: 'object' }
}

/** Always present, because consoles of either family look for their own members. */
const ownUser = {
  id: { type: ['string', 'number'] },
  userid: text,
  username: text,
  name: text,
  avatar: { type: 'string', description: 'Empty if there is no picture.' },
  access: { type: 'string', description: 'The role that menus check, such as admin.' },
  role: text
}

/** @param shaped the members that the profile's shape adds */
export const currentUserSchema = (shaped: Members): JsonSchema => ({
  description: 'The signed-in user.',
  ...record(
    {
      ...optionalUser,
      ...ownUser,
      ...Object.fromEntries(
        Object.entries(shaped).filter(
          ([name]) => !Object.hasOwn(ownUser, name) && !Object.hasOwn(optionalUser, name)
        )
      )
    },
    Object.keys(ownUser)
  )
})

/** With `type`, which is ignored unless it is a text. */
export function loginRequestSchema(fields: GatewayConfig['login']['fields']): JsonSchema {
  const { properties, ...rest } = loginBody(fields) as { properties: Members }
  const type = {
    type: 'string',
    description: 'Returned in the response, such as account or mobile.'
  }
  return { ...rest, properties: { ...properties, type } }
}

/** @param inertToken as config has it */
export const loginResultSchema = (inertToken: string): JsonSchema =>
  record({
    authToken: {
      const: inertToken,
      description:
        inertToken === ''
          ? 'Always empty: the session is a cookie that scripts cannot read.'
          : 'Always this text, which opens nothing: scripts cannot read the session’s cookie.'
    },
    ...outcome('ok')
  })

const secondsLeft = {
  idleIn: { type: 'integer', description: 'Seconds until an unused session ends.' },
  absoluteIn: { type: 'integer', description: 'Seconds until the session ends in any case.' }
}

export const sessionSchema: JsonSchema = record({
  id: { type: 'string', description: 'The public id, which grants no access.' },
  user: record({ id: text, username: text, name: text }),
  roles: { type: 'array', items: text },
  ...secondsLeft
})

export const listedSessionSchema: JsonSchema = record({
  id: text,
  startedAt: { type: 'string', format: 'date-time' },
  lastUsedAt: { type: 'string', format: 'date-time' },
  ...secondsLeft,
  address: text,
  agent: text,
  source: text,
  current: { type: 'boolean', description: 'Whether it is the session of this call.' }
})

export const closedSchema: JsonSchema = record({ closed: whole })
