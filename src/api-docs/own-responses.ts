/** The bodies of what the gateway answers itself, as JSON Schemas: envelopes in their dialects, the current user, sign-in, sessions. */
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
  const own = successMembers[dialect](successCode)
  return record({ ...own, data, ...beside.members }, [
    ...Object.keys(own),
    'data',
    ...beside.required
  ])
}

/** Every error under the public paths. */
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

/** Always there, whoever answers: consoles of either family look for their own. */
const ownUser = {
  id: { type: ['string', 'number'] },
  userid: text,
  username: text,
  name: text,
  avatar: { type: 'string', description: 'Empty where there is no picture.' },
  access: { type: 'string', description: 'What the menus ask for, such as admin.' },
  role: text
}

/** @param known what the profile's shape tells beside */
export const currentUserSchema = (known: Members): JsonSchema => ({
  description: 'Who is signed in.',
  ...record(
    {
      ...optionalUser,
      ...ownUser,
      ...Object.fromEntries(
        Object.entries(known).filter(
          ([name]) => !Object.hasOwn(ownUser, name) && !Object.hasOwn(optionalUser, name)
        )
      )
    },
    Object.keys(ownUser)
  )
})

/** With a member that is read where it is a text, and ignored where it is not. */
export function loginRequestSchema(fields: GatewayConfig['login']['fields']): JsonSchema {
  const { properties, ...rest } = loginBody(fields) as { properties: Members }
  const type = {
    type: 'string',
    description: 'Comes back in the answer, such as account or mobile.'
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
    description: 'Always empty: the session is a cookie that scripts do not see.'
  },
  ...outcome('ok')
})

/** Beside `data`, for consoles that look there. */
export const loginBeside = (dialect: Dialect): Members =>
  dialect === 'base-response' ? {} : outcome('ok')

/** Where a refused sign-in has the status 200. */
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
  idleIn: { type: 'integer', description: 'Seconds until it ends if it is not used.' },
  absoluteIn: { type: 'integer', description: 'Seconds until it ends in any case.' }
}

export const sessionSchema: JsonSchema = record({
  id: { type: 'string', description: 'Its public id, which opens nothing.' },
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
  current: { type: 'boolean', description: 'Whether it is the one that asks.' }
})

export const closedSchema: JsonSchema = record({ closed: whole })
