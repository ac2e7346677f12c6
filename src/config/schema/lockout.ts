/** `lockout` of `limits.yaml`: how guessing at sign-in is slowed down. */
import { Type } from 'typebox'
import { flag, lifetime, whole } from './primitives.ts'

/** The name of the cookie that recognizes a known browser; `__Host-` stands before it where cookies are Secure. */
export const knownBrowserCookie = 'console_known'

const lock = (failures: number, every: string, of: string) =>
  Type.Union(
    [
      Type.Literal('off'),
      Type.Object(
        {
          failures: whole('How many wrong passwords may follow each other at once.', {
            minimum: 1,
            maximum: 100_000,
            default: failures
          }),
          every: lifetime('After these, one more in each such time.', { default: every })
        },
        { additionalProperties: false }
      )
    ],
    { default: {}, expected: '`off`, or `failures` and `every`', description: of }
  )

export const lockout = Type.Object(
  {
    accountAndAddress: lock(5, '5m', 'Wrong passwords for one account from one address.'),
    address: lock(20, '1m', 'Wrong passwords from one address, for any account.'),
    account: lock(50, '15m', 'Wrong passwords for one account, from any address.'),
    knownBrowser: flag(
      'Whether a browser that signed in to the account in the last 90 days is counted by ' +
        'itself, so that nobody else can lock the owner out. It is recognized by the cookie ' +
        `\`${knownBrowserCookie}\`, which gives no access.`,
      { default: true }
    )
  },
  {
    additionalProperties: false,
    default: {},
    description:
      'Slows guessing of passwords down. A right password counts nothing. Where the failures are ' +
      'used up, sign-in is answered 429 until the next one is free.'
  }
)
