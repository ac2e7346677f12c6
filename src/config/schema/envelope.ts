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
    dialect: oneOf([...dialects], {
      default: 'dual',
      description:
        'The format of the envelope, which is the outer object of every response. `dual` works ' +
        'with both kinds of console. `custom`: the names and codes of `envelope.custom`. ' +
        '`problem`: errors are problem details (RFC 9457, `application/problem+json`), and ' +
        'successes have no envelope. `none`: neither has one, and errors have `message` and `code`.'
    }),
    successCode: responseCode({
      default: 0,
      description:
        'The `code` of a successful response, a number or a text in quotes. Set what the console ' +
        'checks for. No error ever carries it, neither as a number nor as a text.',
      examples: [0, 200, 20000, '0000']
    }),
    errorStatus: oneOf([...errorStatuses], {
      default: 'own',
      description:
        'The HTTP status of errors. `own`: each error has its own status. `ok`: always 200, for ' +
        'consoles that read only the envelope. A route can override it; a status in ' +
        '`envelope.custom.errors` wins over both.'
    }),
    language: oneOf(['auto', 'en', 'zh'], {
      default: 'auto',
      description:
        'The language of the gateway’s own messages. `auto`: the first of the request’s ' +
        '`Accept-Language`, if it is one of these; else English.'
    }),
    messages: pairs(Type.String({ minLength: 1 }), {
      keysName: 'error code',
      default: {},
      description: 'Your own messages, by error code. They replace the built-in ones.',
      examples: [{ 'login.refused': 'Wrong user name or password.' }]
    }),
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
    requestId: flag({
      default: true,
      description:
        'Whether the body of an error has the request’s id, which finds it in the log and for ' +
        '`console-gateway why`. The header `X-Request-Id` has it in any case.'
    }),
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
    tokenHeaders: list(header({ description: 'A request header.' }), {
      default: [],
      description:
        'Headers in which a console sends its own token. Whatever a client sends in them is ' +
        'dropped on every way to a back-end, also of WebSockets (`sec-websocket-protocol`: the ' +
        'first subprotocol is then agreed with the console alone). A credential that the gateway ' +
        'itself sends in such a header is kept.',
      examples: [['authorization'], ['x-access-token']]
    }),
    tokenCookies: list(Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'a cookie name' }), {
      default: ['TOKEN__'],
      description:
        'Cookies in which a console keeps its own token. The gateway deletes them at sign-in ' +
        'and sign-out and never sends them to upstreams.'
    }),
    tokenQuery: list(
      Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'the name of a query parameter' }),
      {
        default: [],
        description:
          'Query parameters in which a console sends its own token, in the URLs of pictures, ' +
          'downloads and WebSockets for example. They are dropped on every way to a back-end, in ' +
          'upper and lower case, and so are members of the sign-in body with these names.',
        examples: [['token']]
      }
    )
  },
  'The format of responses.'
)
