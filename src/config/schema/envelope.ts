/** `envelope` of `gateway.yaml`: the outer object of every response. */
import { Type } from 'typebox'
import { list, oneOf, pairs, section, whole } from './primitives.ts'

/** Dialects of the envelope. */
export const dialects = ['dual', 'ant-design-pro', 'base-response'] as const
export const errorStatuses = ['own', 'ok'] as const

export const envelope = section(
  {
    dialect: oneOf([...dialects], {
      default: 'dual',
      description:
        'The format of the envelope, which is the outer object of every response. `dual` works ' +
        'with both kinds of console.'
    }),
    successCode: whole({
      default: 0,
      description: 'The `code` of a successful response. Set what the console checks for.',
      examples: [0, 200, 20000]
    }),
    errorStatus: oneOf([...errorStatuses], {
      default: 'own',
      description:
        'The HTTP status of errors. `own`: each error has its own status. `ok`: always 200, for ' +
        'consoles that read only the envelope. A route can override it.'
    }),
    language: oneOf(['en', 'zh'], {
      default: 'en',
      description: 'The language of the gateway’s own messages.'
    }),
    messages: pairs(Type.String({ minLength: 1 }), {
      default: {},
      description: 'Your own messages, by error code. They replace the built-in ones.',
      examples: [{ 'login.refused': 'Wrong user name or password.' }]
    }),
    tokenCookies: list(Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'a cookie name' }), {
      default: ['TOKEN__'],
      description:
        'Cookies in which a console keeps its own token. The gateway deletes them at sign-in ' +
        'and sign-out and never sends them to upstreams.'
    })
  },
  'The format of responses.'
)
