/** `session` of `gateway.yaml`: lifetimes, the cookie and how many a user may have. */
import { Type } from 'typebox'
import { duration, flag, lifetime, list, oneOf, secret, section, whole } from './primitives.ts'

export const session = section(
  {
    secrets: list(secret({ description: 'At least 32 characters.' }), {
      default: [],
      description:
        'Secrets that sign the cookie and seal the data in Redis: the first signs and seals, all verify and open. A new one has to be second at every replica before it comes first. Make one with `console-gateway generate-secret`. Empty (without Redis only): generated at start.',
      examples: [['${SESSION_SECRET}']]
    }),
    records: Type.Unsafe<1 | 2>(
      Type.Integer({
        enum: [1, 2],
        expected: '1 or 2',
        default: 1,
        description:
          'The format in which sessions are written to Redis. Both are read. ' +
          '`1` is read by every release; set `2` once every replica runs a version that knows ' +
          'this key. With `2` the list of a user’s sessions is no longer kept for the first ' +
          'releases either.'
      })
    ),
    idle: lifetime({
      default: '30m',
      description: 'A session ends when it was not used for so long.'
    }),
    absolute: lifetime({
      default: '8h',
      description: 'A session ends so long after sign-in, used or not.'
    }),
    remembered: section(
      {
        idle: Type.Optional(
          lifetime({
            description:
              'As `session.idle`, for sign-ins that asked to be remembered; the same without it.'
          })
        ),
        absolute: Type.Optional(
          lifetime({ description: 'As `session.absolute`, likewise; the cookie lives as long.' })
        )
      },
      'Life-times of sessions whose sign-in asked to be remembered (`autoLogin`): their cookie outlives the browser.'
    ),
    perUser: section(
      {
        max: whole({
          minimum: 1,
          maximum: 1000,
          default: 5,
          description: 'Sessions that a user may have at once.'
        }),
        over: oneOf(['evict-oldest', 'refuse'], {
          default: 'evict-oldest',
          description: 'What one more sign-in does: end the oldest session, or be refused.'
        })
      },
      'How many sessions a user may have.'
    ),
    revocation: oneOf(['replicated', 'primary'], {
      default: 'replicated',
      description:
        'When a sign-out, a revocation or a sign-in counts as done: `replicated` once the replicas of Redis that are up have it too, so that no failover undoes it; 503 otherwise. `primary` as soon as the primary has it. Without replicas the two are the same.'
    }),
    staleness: duration({
      default: '2s',
      description:
        'The longest that the end of a session can go unnoticed by another replica, when the channel that tells of it is dead without a sign. While it works, replicas know within milliseconds.'
    }),
    headers: flag({
      default: true,
      description:
        'Whether each signed-in answer tells the seconds left in `X-Session-Idle-In` and `X-Session-Absolute-In`.'
    }),
    cookie: section(
      {
        name: Type.String({
          pattern: '^[A-Za-z0-9_-]{1,40}$',
          default: 'console_sid',
          expected: 'letters, digits, _ and -',
          description: 'The cookie’s name; with `secure` it gets the prefix `__Host-`.'
        }),
        secure: flag({
          default: true,
          description: 'Whether the cookie needs https. `false` is for development on loopback.'
        }),
        sameSite: oneOf(['strict', 'lax', 'none'], {
          default: 'strict',
          description:
            '`none` is for a console on another site only, and makes the cookie `Partitioned`.'
        })
      },
      'The session cookie: always HttpOnly, Path=/ and without Domain.'
    )
  },
  'Sessions: an opaque cookie in the browser, the data in Redis.'
)
