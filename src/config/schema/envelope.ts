/** `envelope` of `gateway.yaml`: the outer object of every response. */
import { Type } from 'typebox'
import { customEnvelope } from './custom-envelope.ts'
import { flag, header, list, oneOf, pairs, section } from './primitives.ts'
import { responseCode } from './response-codes.ts'

/** Dialects of the envelope. */
export const dialects = [
  'dual',
  'ant-design-pro',
  'base-response',
  'custom',
  'problem',
  'none'
] as const
export const errorStatuses = ['own', 'ok'] as const

export const envelope = section(
  {
    dialect: oneOf(
      [...dialects],
      'The format of the envelope, which is the outer object of every response. `dual` works ' +
        'with both kinds of console. `custom`: the names and codes of `envelope.custom`. ' +
        '`problem`: errors are problem details (RFC 9457, `application/problem+json`), and ' +
        'successes have no envelope. `none`: neither has one, and errors have `message` and `code`.',
      { default: 'dual' }
    ),
    successCode: responseCode({
      default: 0,
      description:
        'The `code` of a successful response, a number or a text in quotes. Set what the console ' +
        'checks for. No error ever carries it, neither as a number nor as a text.',
      examples: [0, 200, 20000, '0000']
    }),
    errorStatus: oneOf(
      [...errorStatuses],
      'The HTTP status of errors. `own`: each error has its own status. `ok`: always 200, for ' +
        'consoles that read only the envelope. A route can override it; a status in ' +
        '`envelope.custom.errors` wins over both.',
      { default: 'own' }
    ),
    language: oneOf(
      ['auto', 'en', 'zh'],
      'The language of the gateway’s own messages. `auto`: the first of the request’s ' +
        '`Accept-Language`, if it is one of these; else English.',
      { default: 'auto' }
    ),
    messages: pairs(
      Type.String({ minLength: 1 }),
      'Your own messages, by error code. They replace the built-in ones.',
      {
        keysName: 'error code',
        default: {},
        examples: [{ 'login.refused': 'Wrong user name or password.' }]
      }
    ),
    custom: customEnvelope,
    fieldErrors: Type.Unsafe<string | false>(
      Type.Union(
        [
          Type.String({ minLength: 1, maxLength: 64, pattern: '^(?!__proto__$)' }),
          Type.Boolean({ enum: [false] })
        ],
        {
          default: 'fieldErrors',
          expected: 'a member name, or false',
          description:
            'The member of an error that has a back-end’s errors of single fields, as ' +
            '`{ NAME: [TEXT] }`. They are read where the upstream has `errors`.'
        }
      )
    ),
    requestId: flag(
      'Whether the body of an error has the request’s id, which finds it in the log and for ' +
        '`console-gateway why`. The header `X-Request-Id` has it in any case.',
      { default: true }
    ),
    inertToken: Type.String({
      default: '',
      pattern: '^[A-Za-z0-9._~-]{0,128}$',
      expected: 'at most 128 letters, digits, dots, dashes, underscores and tildes',
      description:
        'The token that sign-in answers, for consoles that insist on one. It is the same for ' +
        'everyone and opens nothing: only the session cookie does. Name every place where the ' +
        'console sends it in `tokenHeaders`, `tokenCookies` and `tokenQuery`.',
      examples: ['console-gateway']
    }),
    tokenHeaders: list(
      header('A request header.'),
      'Headers in which a console sends its own token. Whatever a client sends in them is ' +
        'dropped on every way to a back-end, also of WebSockets (`sec-websocket-protocol`: the ' +
        'first subprotocol is then agreed with the console alone). A credential that the gateway ' +
        'itself sends in such a header is kept.',
      { default: [], examples: [['authorization'], ['x-access-token']] }
    ),
    tokenCookies: list(
      Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'a cookie name' }),
      'Cookies in which a console keeps its own token. The gateway deletes them at sign-in ' +
        'and sign-out and never sends them to upstreams.',
      { default: ['TOKEN__'] }
    ),
    tokenQuery: list(
      Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'the name of a query parameter' }),
      'Query parameters in which a console sends its own token, in the URLs of pictures, ' +
        'downloads and WebSockets for example. They are dropped on every way to a back-end, in ' +
        'upper and lower case, and so are members of the sign-in body with these names.',
      { default: [], examples: [['token']] }
    )
  },
  'The format of responses.'
)
