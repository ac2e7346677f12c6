/** `session` of `gateway.yaml`: secrets, lifetimes, the cookie, sessions per user. */
import { Type } from 'typebox'
import * as s from './primitives.ts'

export const session = s.section(
  {
    secrets: s.list(
      s.signingSecret('At least 32 characters.'),
      'Secrets that sign the cookie and encrypt the data in Redis: the first for new data. ' +
        'Add one as the second at every replica, then make it the first.'
    ),
    idle: s.lifetime('A session ends after this time without use.', { default: '30m' }),
    absolute: s.lifetime('A session ends this long after sign-in, even if it is in use.', {
      default: '8h'
    }),
    remembered: s.section(
      {
        idle: s.may.lifetime('Default: `session.idle`.'),
        absolute: s.may.lifetime('Also of the cookie. Default: `session.absolute`.')
      },
      'Sessions whose sign-in asked to be remembered. Their cookie outlives the browser.'
    ),
    perUser: s.section(
      {
        max: s.whole('The maximum number of sessions of one user at the same time.', {
          minimum: 1,
          maximum: 1000,
          default: 5
        }),
        over: s.oneOf(
          ['evict-oldest', 'refuse'],
          'At one more: `evict-oldest` ends the one that was unused for longest, `refuse` ' +
            'answers 409.',
          { default: 'evict-oldest' }
        )
      },
      'How many sessions a user may have.'
    ),
    cookie: s.section(
      {
        name: Type.String({
          pattern: '^[A-Za-z0-9_-]{1,40}$',
          default: 'console_sid',
          expected: 'letters, digits, _ and -',
          description: 'The name of the cookie. With `secure` it gets the prefix `__Host-`.'
        }),
        secure: s.flag('Send it over https only. `false` is for development on loopback.', {
          default: true
        }),
        sameSite: s.oneOf(
          ['strict', 'lax', 'none'],
          '`none` is for a console on another site; the cookie is then `Partitioned`.',
          { default: 'strict' }
        )
      },
      'The session cookie. It is always HttpOnly, with Path=/ and without Domain.'
    )
  },
  'Sessions: a random id in the browser’s cookie, the data in Redis.'
)
