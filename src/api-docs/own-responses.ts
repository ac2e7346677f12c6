/** JSON Schemas of the gateway's own responses: envelopes, the current user, sign-in, sessions. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { loginBody } from '../config/schema/request-bodies.ts'
import { errorKinds } from '../errors.ts'

export type Dialect = GatewayConfig['envelope']['dialect']

type Members = Readonly<Record<string, JsonSchema>>

const text = { type: 'string' }
const whole = { type: 'integer' }
const record = (
  properties: Members,
  required: readonly string[] = Object.keys(properties)
): JsonSchema => ({ type: 'object', properties, ...(required.length > 0 && { required }) })

/** The members of an envelope by its dialect, before `data`. */
const successMembers: Readonly<Record<Dialect, (successCode: number) => Members>> = {
  'dual': successCode => ({ ...numberedSuccess(successCode), success: { const: true } }),
  'ant-design-pro': () => ({ success: { const: true } }),
  'base-response': successCode => numberedSuccess(successCode)
}

function numberedSuccess(successCode: number): Members {
  return { ok: { const: true }, code: { const: successCode }, message: text }
}

/** The envelope of a success, with `data` and the members beside it. */
export function successSchema(
  { dialect, successCode }: Pick<GatewayConfig['envelope'], 'dialect' | 'successCode'>,
  data: JsonSchema,
  beside: { readonly members: Members; readonly required: readonly string[] } = {
    members: {},
    required: []
  }
): JsonSchema {
  const standard = successMembers[dialect](successCode)
  return record({ ...standard, data, ...beside.members }, [
    ...Object.keys(standard),
    'data',
    ...beside.required
  ])
}

/** The envelope of every error of public paths. */
export function failureSchema(dialect: Dialect): JsonSchema {
  const code: JsonSchema = { $ref: '#/components/schemas/ErrorCode' }
  const requestId = { type: 'string', description: 'Finds the request in the gateway’s log.' }
  const numbered = {
    ok: { const: false },
    code: { type: 'integer', description: 'The HTTP status, or the back-end’s own number.' },
    message: { type: 'string', description: 'For people.' }
  }
  const shown = {
    success: { const: false },
    errorCode: code,
    errorMessage: text,
    showType: {
      enum: [0, 1, 2, 3, 9],
      description:
        'How it is shown: 0 silent, 1 warning, 2 message, 3 notification, 9 go to sign-in.'
    },
    requestId
  }
  if (dialect === 'ant-design-pro') return record(shown)
  return record(
    dialect === 'base-response'
      ? { ...numbered, errorCode: code, requestId }
      : { ...numbered, ...shown }
  )
}

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

const outcome = (status: string) => ({
  status: { const: status },
  type: text,
  currentAuthority: text
})

export const loginResultSchema: JsonSchema = record({
  authToken: {
    const: '',
    description: 'Always empty: the session is a cookie that scripts cannot read.'
  },
  ...outcome('ok')
})

/** Members beside `data`, for consoles that look for them there. */
export const loginBeside = (dialect: Dialect): Members =>
  dialect === 'base-response' ? {} : outcome('ok')

/** The body of a refused sign-in with the status 200. */
export function loginRefusedSchema(dialect: Dialect): JsonSchema {
  const { properties, required } = failureSchema(dialect) as {
    properties: Members
    required: string[]
  }
  const { success: _, ...rest } = properties
  return record({ ...rest, ...outcome('error') }, [
    ...required.filter(name => name !== 'success'),
    ...Object.keys(outcome('error'))
  ])
}

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
