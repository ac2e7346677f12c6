/** JSON Schemas of the envelopes: of successes, errors and sign-in, by dialect. */
import type { Config } from '../config/schema/config.ts'
import type { CustomEnvelope } from '../config/schema/custom-envelope.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { JsonSchema } from '../contract/schema.ts'

/** With the dialect of an operation, which may differ from the config's. */
export type EnvelopeSettings = GatewayConfig['envelope']
export type Dialect = EnvelopeSettings['dialect']
export type Members = Readonly<Record<string, JsonSchema>>

export const text = { type: 'string' }
export const record = (
  properties: Members,
  required: readonly string[] = Object.keys(properties)
): JsonSchema => ({ type: 'object', properties, ...(required.length > 0 && { required }) })

const named = (members: ReadonlyArray<readonly [name: string | false, schema: JsonSchema]>) =>
  Object.fromEntries(members.filter(([name]) => name !== false)) as Members

/** The members of a success before its data. */
function successMembers({ dialect, successCode, custom }: EnvelopeSettings): Members {
  const numbered = { ok: { const: true }, code: { const: successCode }, message: text }
  switch (dialect) {
    case 'dual':
      return { ...numbered, success: { const: true } }
    case 'ant-design-pro':
      return { success: { const: true } }
    case 'base-response':
      return numbered
    case 'custom': {
      const { members } = custom as CustomEnvelope
      return named([
        [members.success, { const: true }],
        [members.code, { const: successCode }],
        [members.message, text]
      ])
    }
    case 'problem':
      return {}
  }
}

/** The name of the member with the value; false where its members stand beside the code. */
function dataName({ dialect, custom }: EnvelopeSettings): string | false {
  if (dialect === 'problem') return false
  return dialect === 'custom' ? (custom as CustomEnvelope).members.data : 'data'
}

interface Beside {
  readonly members: Members
  readonly required: readonly string[]
}

const nothingBeside: Beside = { members: {}, required: [] }

/** The envelope of a success, with its value and the members beside it. */
export function successSchema(
  envelope: EnvelopeSettings,
  data: JsonSchema,
  beside: Beside = nothingBeside
): JsonSchema {
  const name = dataName(envelope)
  return name === false
    ? flatSchema(envelope, data, beside)
    : namedSchema(envelope, name, data, beside)
}

function namedSchema(
  envelope: EnvelopeSettings,
  name: string,
  data: JsonSchema,
  { members, required }: Beside
): JsonSchema {
  const standard = successMembers(envelope)
  return record({ ...standard, [name]: data, ...members }, [
    ...Object.keys(standard),
    name,
    ...required
  ])
}

/** The envelope of a success whose members stand beside the code. */
function flatSchema(
  envelope: EnvelopeSettings,
  data: JsonSchema,
  { members, required }: Beside = nothingBeside
): JsonSchema {
  if (envelope.dialect === 'problem') return data
  const standard = successMembers(envelope)
  const head = { ...standard, ...members }
  if (Object.keys(head).length === 0) return data
  return { allOf: [record(head, [...Object.keys(standard), ...required]), data] }
}

/** A value of an answer; its type is undefined if it is unknown. */
interface Value {
  readonly data: JsonSchema
  readonly type: unknown
}

/**
 * The envelope of `members.data: false` for a value that may be no object; undefined where the
 * value is an object, or stands under `data` in any case.
 */
export function unnamedSchema(
  envelope: EnvelopeSettings,
  value: Value,
  beside: Beside
): JsonSchema | undefined {
  if (envelope.dialect !== 'custom' || dataName(envelope) !== false) return undefined
  if (value.type === 'object') return undefined
  return flatOrNamedSchema(envelope, value, beside)
}

/** The envelope of a value whose members stand beside the code; under `data` if it is no object. */
export function flatOrNamedSchema(
  envelope: EnvelopeSettings,
  { data, type }: Value,
  beside: Beside = nothingBeside
): JsonSchema {
  const flat = flatSchema(envelope, data, beside)
  if (envelope.dialect === 'problem' || type === 'object') return flat
  const underName = namedSchema(envelope, dataName(envelope) || 'data', data, beside)
  return typeof type === 'string' ? underName : { anyOf: [flat, underName] }
}

/** A value that is the whole body, and members that may stand in it if it is an object. */
export function bareSchema({ data, type }: Value, members: Members): JsonSchema {
  const isObject = type === undefined || type === 'object'
  if (!isObject || Object.keys(data).length === 0 || Object.keys(members).length === 0) return data
  return { allOf: [data, { properties: members }] }
}

const errorCode: JsonSchema = { $ref: '#/components/schemas/ErrorCode' }
const requestId = { type: 'string', description: 'Finds the request in the gateway’s log.' }
const forPeople = { type: 'string', description: 'For people.' }
const showType = {
  enum: [0, 1, 2, 3, 9],
  description: 'How it is shown: 0 silent, 1 warning, 2 message, 3 notification, 9 go to sign-in.'
}

/** RFC 9457 */
const problemMembers = {
  type: { type: 'string', format: 'uri-reference' },
  title: { type: 'string', description: 'The name of the HTTP status.' },
  status: { type: 'integer', description: 'The HTTP status.' },
  detail: forPeople,
  code: errorCode
}

const fieldErrorsSchema: JsonSchema = {
  type: 'object',
  additionalProperties: { type: 'array', items: text },
  description: 'The errors of single fields, by their names, where the back-end told some.'
}

/** The member with errors of single fields; false where no back-end's errors are read for them. */
function fieldErrorsName({ gateway, routes }: Config): string | false {
  const { fieldErrors } = gateway.envelope
  const isRead = Object.values(routes.upstreams).some(({ errors }) =>
    // All formats with a name have fields.
    typeof errors === 'object' ? errors.fields !== undefined : errors !== undefined
  )
  return isRead && fieldErrors
}

/** The envelope of every error of public paths, in the dialect of the config or another. */
export function failureSchema(config: Config, dialect?: Dialect): JsonSchema {
  const { envelope } = config.gateway
  const schema = standardFailure({ ...envelope, dialect: dialect ?? envelope.dialect })
  const name = fieldErrorsName(config)
  if (name === false) return schema
  const { properties } = schema as { properties: Members }
  return { ...schema, properties: { ...properties, [name]: fieldErrorsSchema } }
}

function standardFailure(envelope: EnvelopeSettings): JsonSchema {
  const ofRequest = envelope.requestId && { requestId }
  const numbered = {
    ok: { const: false },
    code: { type: 'integer', description: 'The HTTP status, or the back-end’s own number.' },
    message: forPeople
  }
  const shown = {
    success: { const: false },
    errorCode,
    errorMessage: text,
    showType,
    ...ofRequest
  }
  switch (envelope.dialect) {
    case 'ant-design-pro':
      return record(shown)
    case 'base-response':
      return record({ ...numbered, errorCode, ...ofRequest })
    case 'dual':
      return record({ ...numbered, ...shown })
    case 'custom':
      return customFailure(envelope)
    case 'problem':
      return record({ ...problemMembers, ...ofRequest })
  }
}

function customFailure({ successCode, custom, requestId: hasId }: EnvelopeSettings): JsonSchema {
  const { members } = custom as CustomEnvelope
  const code = {
    type: typeof successCode === 'string' ? ['string', 'integer'] : ['integer', 'string'],
    description: 'By config, or the HTTP status, or the back-end’s own number.'
  }
  return record(
    named([
      [members.success, { const: false }],
      [members.code, code],
      [members.message, forPeople],
      [members.errorCode, errorCode],
      [members.showType, showType],
      [hasId && members.requestId, requestId]
    ])
  )
}

/** The member of an error with the gateway's error code, and the content type of errors. */
export interface FailureFormat {
  readonly codeName: string | false
  readonly contentType: string
}

export function failureFormatOf({ dialect, custom }: EnvelopeSettings): FailureFormat {
  const contentType = 'application/json'
  if (dialect === 'problem') return { codeName: 'code', contentType: 'application/problem+json' }
  if (dialect !== 'custom') return { codeName: 'errorCode', contentType }
  return { codeName: (custom as CustomEnvelope).members.errorCode, contentType }
}

/** The profile's 401 has `isLogin: false` beside the error, for the consoles that look for it. */
export function notSignedIn({ dialect }: EnvelopeSettings): Members {
  if (dialect === 'custom' || dialect === 'problem') return {}
  return { data: record({ isLogin: { const: false } }) }
}

export const outcome = (status: string) => ({
  status: { const: status },
  type: text,
  currentAuthority: text
})

/** Members of a sign-in beside `data`, for consoles that look for them there. */
export const loginBeside = ({ dialect }: EnvelopeSettings): Members =>
  dialect === 'dual' || dialect === 'ant-design-pro' ? outcome('ok') : {}

/** The body of a refused sign-in with the status 200. */
export function loginRefusedSchema(envelope: EnvelopeSettings): JsonSchema {
  const { dialect } = envelope
  const { properties, required } = standardFailure(envelope) as {
    properties: Members
    required: string[]
  }
  if (dialect === 'problem') return record(properties)
  const refused = outcome('error')
  if (dialect === 'custom') return record({ ...refused, ...properties })
  const { success: _, ...rest } = properties
  return record({ ...rest, ...refused }, [
    ...required.filter(name => name !== 'success'),
    ...Object.keys(refused)
  ])
}
