/** `envelope` of `gateway.yaml`: the outer object of every answer. */
import { Type } from 'typebox'
import { list, oneOf, pairs, section, whole } from './primitives.ts'

/** Dialects of the envelope. */
export const dialects = ['dual', 'ant-design-pro', 'base-response'] as const
export const errorStatuses = ['own', 'ok'] as const

export const envelope = section(
  {
    dialect: oneOf([...dialects], {
      default: 'dual',
      description: 'The outer object of every answer. `dual` suits both kinds of console.'
    }),
    successCode: whole({
      default: 0,
      description: 'The `code` of a success.',
      examples: [0, 200, 20000]
    }),
    errorStatus: oneOf([...errorStatuses], {
      default: 'own',
      description:
        'The HTTP status of errors: their `own`, or `ok`, which is 200 for consoles that look only at the envelope. A route may say otherwise.'
    }),
    language: oneOf(['en', 'zh'], {
      default: 'en',
      description: 'The language of the gateway’s own messages.'
    }),
    messages: pairs(Type.String({ minLength: 1 }), {
      default: {},
      description: 'Messages of your own, by error code.',
      examples: [{ 'login.refused': 'Wrong user name or password.' }]
    }),
    tokenCookies: list(Type.String({ pattern: '^[A-Za-z0-9_.-]+$', expected: 'a cookie name' }), {
      default: ['TOKEN__'],
      description:
        'Cookies in which consoles keep a token of their own: expired at sign-in and sign-out, never sent upstream.'
    })
  },
  'How answers look.'
)
