/** `lockout` of `limits.yaml`: how sign-in is locked after too many failures. */
import { Type } from 'typebox'
import { lifetime, oneOf, whole } from './primitives.ts'

const lock = (failing: string, after: number, more: string) =>
  Type.Object(
    {
      mode: oneOf(['enforce', 'shadow', 'off'], {
        default: 'enforce',
        description:
          '`enforce`: refuse sign-ins while locked. `shadow`: count and report, but refuse ' +
          'nobody. `off`: do not count.'
      }),
      after: whole({
        minimum: 1,
        maximum: 100_000,
        default: after,
        description: `How many refused sign-ins ${failing} within \`within\` lock it.`
      }),
      within: lifetime({
        default: '10m',
        description: 'The period in which failures are counted. It begins with the first failure.'
      }),
      delay: lifetime({
        default: '1m',
        description:
          'The length of the first lock. It ends by itself. Attempts during a lock do not ' +
          'extend it.'
      }),
      longest: lifetime({
        default: '15m',
        description:
          'The maximum length of a lock. Each further lock lasts twice as long as the one ' +
          'before, up to this.'
      }),
      forget: lifetime({
        default: '1d',
        minimum: 0,
        description:
          'How long after a lock the next lock is still a longer one. Later, locks begin with ' +
          '`delay` again. `0s`: each lock does.'
      })
    },
    { additionalProperties: false, default: {}, description: more }
  )

export const lockout = Type.Object(
  {
    account: lock(
      'of an account, from any address,',
      5,
      'Locks an account, whatever the address, against guessing one password. ' +
        'After a lock one more failure within `within` locks it again.'
    ),
    address: lock(
      'from an address, for any account,',
      20,
      'Locks an address, whatever the account, against trying many accounts. ' +
        'After a lock it again takes `after` failures, since offices share an address.'
    ),
    knownBrowser: Type.Object(
      {
        mode: oneOf(['on', 'off'], {
          default: 'on',
          description:
            '`on`: treat known browsers separately. `off`: treat all browsers as unknown.'
        }),
        cookie: Type.String({
          pattern: '^[a-z][a-z0-9_-]{0,62}$',
          default: 'console_known',
          expected: 'a cookie name in lower case',
          description:
            'The name of the cookie that marks a known browser. With a Secure session cookie it ' +
            'gets the prefix `__Host-`. It does not sign anyone in and is never sent to ' +
            'upstreams.'
        }),
        lifetime: lifetime({
          default: '90d',
          description: 'How long a browser is known after its last sign-in.'
        }),
        after: whole({
          minimum: 1,
          maximum: 1000,
          default: 5,
          description:
            'How many refused sign-ins from a known browser lock it, in case its cookie was ' +
            'stolen. The other numbers are those of `account`, also where its `mode` is `off`.'
        })
      },
      {
        additionalProperties: false,
        default: {},
        description:
          'A browser is known to an account after a sign-in there. Locks of the account and the ' +
          'address, and limits with `refusedOnly`, then do not apply to it; it has a count of ' +
          'its own. So an attacker cannot lock the owner out. If `account` and `address` are ' +
          'both off, no browser is known.'
      }
    )
  },
  {
    additionalProperties: false,
    default: {},
    description: 'Locks sign-in for a time after too many failures, against password guessing.'
  }
)
