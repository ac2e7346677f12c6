import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

export const dialects = [
  'dual',
  'ant-design-pro',
  'base-response',
  'custom',
  'problem',
  'none'
] as const
export const errorStatuses = ['own', 'ok'] as const

export type ResponseCode = number | string

const responseCode = (description: string, more: object = {}) =>
  s.either(description, [Type.Integer(), Type.String({ minLength: 1, maxLength: 64 })], {
    expected: 'a whole number or a text',
    ...more
  })

/** Whether some console takes the two for the same: by `===`, `==`, as texts or as numbers. */
export function readsAs(a: ResponseCode, b: ResponseCode): boolean {
  return String(a) === String(b) || Number(a) === Number(b)
}

const memberName = (standard: string | false, description: string) =>
  s.either(
    description,
    [
      Type.String({ minLength: 1, maxLength: 64, pattern: '^(?!__proto__$)' }),
      Type.Unsafe<false>(Type.Boolean({ enum: [false] }))
    ],
    { default: standard, expected: 'a member name, or false' }
  )

const members = s.section('Names; `false`: the envelope has no such member.', {
  code: memberName('code', 'The code of success or of the error.'),
  message: memberName('message', 'The message for people.'),
  data: memberName('data', 'The value of a success. `false`: its members stand beside the code.'),
  success: memberName(false, 'true for a success, false for an error.'),
  requestId: memberName('requestId', 'In errors: the id that finds the request in the log.'),
  errorCode: memberName('errorCode', 'In errors: the gateway’s error code, a text.')
})

const errorEntry = s.closed(
  'The code and HTTP status of these errors.',
  {
    code: s.maybe(responseCode('The code in the envelope.')),
    status: s.may.status('200, or 400 to 599. It wins over `errorStatus`.', { minimum: 200 })
  },
  { minProperties: 1 }
)

const errors = s.byErrorCode(
  'By code, prefix (`session.*`) or `*`. Default: by status.',
  errorEntry,
  {
    examples: [{ 'session.*': { code: 50008 }, 'login.refused': { code: 500, status: 200 } }]
  }
)

const customEnvelope = s.optional('The envelope of `dialect: custom`.', {
  members,
  successMessage: s.anyText('The message of a success.', { default: 'OK' }),
  alsoSuccess: s.list('Other codes of success; no error carries one.', responseCode('A code.')),
  refreshCodes: s.list('Codes on which the console refreshes its token.', responseCode('A code.')),
  errors
})

const plainName = Type.String({
  pattern: '^[A-Za-z0-9_.-]+$',
  expected: 'a name of letters, digits, _, - and dots'
})

export const envelope = s.section('The format of responses.', {
  dialect: s.choice(
    '`dual` fits both kinds of console. `problem`: RFC 9457, bare successes. `none`: all is bare.',
    dialects
  ),
  successCode: responseCode('The `code` of a success, as the console checks for.', {
    default: 0,
    examples: [0, 200, 20000, '0000']
  }),
  errorStatus: s.choice('Of errors: each its own, or 200. `custom.errors` wins.', errorStatuses),
  language: s.choice('Of its own messages. `auto`: by `Accept-Language`, else English.', [
    'auto',
    'en',
    'zh'
  ]),
  messages: s.pairs('Your own messages, by error code, in place of the built-in.', s.text(), {
    keysName: 'error code',
    examples: [{ 'login.refused': 'Wrong user name or password.' }]
  }),
  custom: customEnvelope,
  fieldErrors: memberName('fieldErrors', 'The member with errors of single fields of a form.'),
  inertToken: Type.String({
    default: '',
    pattern: '^[A-Za-z0-9._~-]{0,128}$',
    expected: 'at most 128 letters, digits, dots, dashes, underscores and tildes',
    description: 'The token of sign-in, for consoles that insist on one. It opens nothing.'
  }),
  tokenHeaders: s.headerNames('Headers with it (`sec-websocket-protocol`). Back-ends get none.'),
  tokenCookies: s.list('Cookies with it, deleted at sign-in and sign-out.', plainName, {
    default: ['TOKEN__']
  }),
  tokenQuery: s.list('Query parameters and members of the sign-in body with it.', plainName)
})

export type CustomEnvelope = NonNullable<Static<typeof customEnvelope>>
type ErrorEntry = CustomEnvelope['errors'][string]

/** The entry for an error code: its own, that of the longest prefix, or that of `*`. */
export function errorEntryOf(entries: CustomEnvelope['errors'], errorCode: string) {
  const parts = errorCode.split('.')
  const prefixes = parts.slice(1).map((_, index) => `${parts.slice(0, -1 - index).join('.')}.*`)
  const key = [errorCode, ...prefixes, '*'].find(each => Object.hasOwn(entries, each))
  return key === undefined ? undefined : { key, entry: entries[key] as ErrorEntry }
}
