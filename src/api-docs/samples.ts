/** Schemas of what the gateway itself writes, learned from samples of it. */
import type { OwnKey } from '../config/schema/own-endpoints.ts'
import type { JsonSchema } from '../contract/schema.ts'
import { type ErrorCode, errorKinds, GatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import { describeSession, timeLeft } from '../session/describe.ts'
import type { Live } from '../session/types.ts'
import { fillCurrentUser } from '../shaping/answer.ts'
import type { Envelope, Placement } from '../shaping/envelope.ts'

const identity = { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} }
const live: Live = {
  key: '',
  sealed: '',
  idleEnd: 0,
  absoluteEnd: 0,
  session: {
    id: 'a1b2c3',
    identity,
    source: 'users-file',
    remembered: false,
    createdAt: 0,
    idleMs: 0,
    address: '203.0.113.7',
    agent: 'Mozilla/5.0'
  }
}

/** @param data of what a success holds; of the whole body, where that is not one member */
export function successSchema(
  { success, dataName }: Envelope,
  data: JsonSchema,
  placement: Placement = 'data'
): JsonSchema {
  if (placement !== 'data' || dataName === false) return data
  return withMember(learnSchema([success('value')]), dataName, data)
}

/** Of an endpoint of the gateway, as it is where config writes no answer. */
export function ownSchema({ success, login, fillsUser }: Envelope, key: OwnKey): JsonSchema {
  // An id may be a number where the back-end's is one.
  const users = fillsUser ? [{}, { id: 1 }].map(user => fillCurrentUser(user, identity)) : []
  const session = [success(timeLeft(live))]
  const listed = { ...describeSession(live), current: true }
  const samples: Record<OwnKey, readonly unknown[]> = {
    login: [login({ type: 'account', authority: 'admin' })],
    logout: [success({})],
    profile: users.map(user => success(user)),
    refresh: session,
    jwks: [{ keys: [{ kty: '', crv: '', x: '', y: '', kid: '', alg: '', use: '' }] }],
    check: [],
    session,
    extend: session,
    list: [success([listed])],
    close: [success({ closed: 1 })]
  }
  return learnSchema(samples[key])
}

/** Of all errors; what only some of them have is not required. */
export function failureSchema({ failure, notSignedIn }: Envelope): JsonSchema {
  const codes = Object.keys(errorKinds) as ErrorCode[]
  const detail = { fieldErrors: { 1: ['text'] }, extra: { code: 7, until: 'text' } }
  const samples = codes.map(code => failure(new GatewayError(code), 'id'))
  const [first = {}] = samples
  const more = [
    { ...first, ...notSignedIn },
    failure(new GatewayError('upstream.error', detail), '')
  ]
  const learned = learnSchema([...samples, ...more])
  const codeName = Object.keys(first).find(name => first[name] === codes[0])
  if (codeName === undefined) return learned
  return withMember(learned, codeName, { type: 'string', enum: codes })
}

function withMember(schema: JsonSchema, name: string, member: JsonSchema): JsonSchema {
  return { ...schema, properties: { ...(schema['properties'] as JsonSchema), [name]: member } }
}

/** @returns {} where nothing was seen: any value */
function learnSchema(values: readonly unknown[]): JsonSchema {
  const types = [...new Set(values.map(typeOf))]
  const records = values.filter(isRecord)
  const items = values.filter(value => Array.isArray(value)).flat() as unknown[]
  return {
    ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
    ...(items.length > 0 && { items: learnSchema(items) }),
    ...(records.length > 0 && learnMembers(records))
  }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Members that are named by numbers are data: all of them share one schema. */
function learnMembers(records: ReadonlyArray<Record<string, unknown>>): JsonSchema {
  const names = [...new Set(records.flatMap(Object.keys))]
  if (names.length > 0 && names.every(name => /^\d+$/.test(name))) {
    return { additionalProperties: learnSchema(records.flatMap(Object.values)) }
  }
  const valuesOf = (name: string) =>
    records.filter(record => Object.hasOwn(record, name)).map(record => record[name])
  const required = names.filter(name => valuesOf(name).length === records.length)
  const members = names.map(name => [name, learnSchema(valuesOf(name))])
  return {
    ...(required.length > 0 && { required }),
    ...(names.length > 0 && { properties: Object.fromEntries(members) as JsonSchema })
  }
}
