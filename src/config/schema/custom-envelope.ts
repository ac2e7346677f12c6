/** `envelope.custom` of `gateway.yaml`: an envelope with names and codes of its own. */
import { type Static, Type } from 'typebox'
import { closed, list, maybe, optional, section, text } from './primitives.ts'
import { responseCode } from './response-codes.ts'

const memberName = (standard: string | false, description: string) =>
  Type.Unsafe<string | false>(
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength: 64, pattern: '^(?!__proto__$)' }),
        Type.Boolean({ enum: [false] })
      ],
      { default: standard, expected: 'a member name, or false', description }
    )
  )

/** The error codes of an entry: `session.idle`, all of `session.*`, or every other with `*`. */
const errorCodePattern = '^(\\*|[a-z][a-z-]*(\\.[a-z-]+)*(\\.\\*)?)$'

const errorEntry = closed(
  {
    code: maybe(responseCode({ description: 'The code in the envelope.', examples: [50008] })),
    status: maybe(
      Type.Integer({
        minimum: 200,
        maximum: 599,
        description:
          'The HTTP status: 200, or 400 to 599. It wins over `errorStatus`, also of a route. ' +
          'Requests that are refused before routing keep their own status.',
        examples: [200]
      })
    ),
    message: maybe(text('The message. `envelope.messages` and a back-end’s own message win.'))
  },
  'The code, HTTP status and message of these errors.',
  { minProperties: 1 }
)

const members = section(
  {
    code: memberName('code', 'The code of success or of the error.'),
    message: memberName('message', 'The message for people.'),
    data: memberName(
      'data',
      'The value of a success. `false`: the members of an object stand beside the code, always.'
    ),
    success: memberName(false, 'true for a success, false for an error.'),
    requestId: memberName('requestId', 'In errors: the id that finds the request in the log.'),
    errorCode: memberName('errorCode', 'In errors: the gateway’s error code, a text.'),
    showType: memberName(false, 'In errors: how Ant Design Pro shows it.')
  },
  'The names of the members; `false`: the envelope has no such member.'
)

export const customEnvelope = optional(
  {
    members,
    successMessage: Type.String({
      default: 'OK',
      description: 'The message of a success.',
      examples: ['操作成功']
    }),
    alsoSuccess: list(
      responseCode({ description: 'A code.' }),
      'Other codes that the console takes for a success. Like `successCode`, no error ever ' +
        'carries one of them.',
      { default: [], examples: [[0]] }
    ),
    refreshCodes: list(
      responseCode({ description: 'A code.' }),
      'Codes on which the console calls its refresh endpoint and repeats the request. A ' +
        'back-end’s own number never becomes one of them.',
      { default: [], examples: [['9999']] }
    ),
    errors: Type.Record(
      Type.String({
        pattern: errorCodePattern,
        expected: 'an error code, a prefix such as session.*, or *'
      }),
      errorEntry,
      {
        default: {},
        description:
          'By error code, by prefix (`session.*`) or for all others (`*`): the code, HTTP status ' +
          'and message of errors. Without an entry an error’s code is its HTTP status. The ' +
          'number of a back-end’s own error stays, unless an entry names `upstream.error` or ' +
          '`upstream.*`.',
        examples: [{ 'session.*': { code: 50008 }, 'login.refused': { code: 500, status: 200 } }]
      }
    )
  },
  'The envelope of `dialect: custom`.'
)

export type CustomEnvelope = NonNullable<Static<typeof customEnvelope>>
export type ErrorEntry = CustomEnvelope['errors'][string]

/** The entry for an error code: its own, that of the longest prefix, or that of `*`. */
export function errorEntryOf(
  errors: CustomEnvelope['errors'],
  errorCode: string
): { readonly key: string; readonly entry: ErrorEntry } | undefined {
  const parts = errorCode.split('.')
  const prefixes = parts.slice(1).map((_, index) => `${parts.slice(0, -1 - index).join('.')}.*`)
  const key = [errorCode, ...prefixes, '*'].find(each => Object.hasOwn(errors, each))
  return key === undefined ? undefined : { key, entry: errors[key] as ErrorEntry }
}
