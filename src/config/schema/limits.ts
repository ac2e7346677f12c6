/** Live config, `limits.yaml`: how much, how large, how often. */
import { Type, type Static } from 'typebox'
import {
  flag,
  lifetime,
  list,
  maxShaped,
  name,
  named,
  oneOf,
  oneOrMany,
  size,
  whole
} from './primitives.ts'
import { expressionsSchema } from './shapes.ts'

const whom = ['address', 'user', 'session', 'account'] as const
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const limit = Type.Object(
  {
    by: oneOrMany([...whom], {
      one: 'Whom.',
      many: 'Several together.',
      expected: `one of ${whom.join(', ')}, or a list of them`,
      description:
        'Whom it counts: `address`, callers who are not signed in; `user`, callers who are; `session`, one sign-in of a user; `account`, the user name that a sign-in tries. A list counts each pair by itself: `[user, address]`.'
    }),
    max: whole({
      minimum: 1,
      maximum: 1_000_000_000,
      description: 'How many are allowed in a window.'
    }),
    window: lifetime({ description: 'How long a window is.' }),
    kind: oneOf(['fixed', 'sliding'], {
      default: 'fixed',
      description:
        '`fixed`: the window begins with the first request, and when it ends all are free again. `sliding`: no stretch of time of this length, wherever it begins, has more; what was used is free again at most a sixteenth of `window` late.'
    }),
    burst: Type.Optional(
      whole({
        minimum: 1,
        maximum: 1_000_000_000,
        description:
          'At most so many at once; they come back evenly, `max` in each `window`. In the place of `kind`.'
      })
    ),
    mode: oneOf(['enforce', 'shadow', 'off'], {
      default: 'enforce',
      description:
        '`shadow` counts, and reports in metrics and log whom it would have refused, but refuses nobody.'
    }),
    routes: list(name({ description: 'A route, or one of login, logout, profile, session.' }), {
      default: [],
      description: 'Where it holds; everywhere under the public paths without it.'
    }),
    methods: list(oneOf([...methods], { description: 'A method.' }), {
      default: [],
      description: 'For which methods; all without it.'
    }),
    roles: list(Type.String({ minLength: 1 }), {
      default: [],
      description: 'For whom, by role; everyone without it.'
    }),
    refusedOnly: flag({
      default: false,
      description:
        'For sign-in: count only attempts that are refused. Each is counted before the password is looked at, and given back when it was right.'
    })
  },
  { additionalProperties: false, description: 'A limit.' }
)

const sizes = Type.Object(
  {
    body: size({
      default: '1MiB',
      description: 'The largest request body, proxied ones included; a route may say otherwise.'
    }),
    login: size({ default: '4KiB', maximum: 1024 ** 2, description: 'The largest sign-in body.' }),
    url: size({ default: '8KiB', maximum: 16 * 1024, description: 'The longest path with query.' }),
    headerCount: whole({
      minimum: 10,
      maximum: 1000,
      default: 100,
      description: 'The most header lines of a request.'
    }),
    shape: size({
      default: '2MiB',
      maximum: maxShaped,
      description:
        'The largest answer that is shaped, as it comes and unpacked; a route may say otherwise (`maxShaped`), and what becomes of a larger one (`tooLarge`).'
    })
  },
  {
    additionalProperties: false,
    default: {},
    description: 'Sizes. Header fields together are held to 16 KiB.'
  }
)

const lock = (failing: string, after: number, more: string) =>
  Type.Object(
    {
      mode: oneOf(['enforce', 'shadow', 'off'], {
        default: 'enforce',
        description: '`shadow` counts and reports, but lets everybody try.'
      }),
      after: whole({
        minimum: 1,
        maximum: 100_000,
        default: after,
        description: `So many refused sign-ins ${failing} within \`within\` lock.`
      }),
      within: lifetime({
        default: '10m',
        description: 'In this time, counted from the first of them.'
      }),
      delay: lifetime({
        default: '1m',
        description:
          'How long the first lock lasts. It ends by itself; what is tried meanwhile does not make it longer.'
      }),
      longest: lifetime({
        default: '15m',
        description: 'Each further lock lasts twice as long, up to this.'
      }),
      forget: lifetime({
        default: '1d',
        description: 'How long after a lock the next one is longer.'
      })
    },
    { additionalProperties: false, default: {}, description: more }
  )

const lockout = Type.Object(
  {
    account: lock(
      'of an account, from anywhere,',
      5,
      'Who guesses at one account, from however many addresses. After a lock one more failure locks again, as long as failures are remembered.'
    ),
    address: lock(
      'of an address, at whatever accounts,',
      20,
      'Who guesses from one address. Offices share one, so it takes as many failures each time.'
    ),
    knownBrowser: Type.Object(
      {
        mode: oneOf(['on', 'off'], {
          default: 'on',
          description: '`off`: all browsers are strangers.'
        }),
        cookie: Type.String({
          pattern: '^[a-z][a-z0-9_-]{0,62}$',
          default: 'console_known',
          expected: 'a cookie name in lower case',
          description:
            'The name of its cookie, behind `__Host-` where the session cookie is Secure. It opens nothing, and never goes upstream.'
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
            'So many refused sign-ins of a known browser lock it, as `account` says how long: what a thief of the cookie may try.'
        })
      },
      {
        additionalProperties: false,
        default: {},
        description:
          'A browser in which somebody signed in before is no stranger to that account: locks of the account and the address, and limits with `refusedOnly`, do not hold for it. It has a count of its own. None is known where `account` and `address` are both off.'
      }
    )
  },
  {
    additionalProperties: false,
    default: {},
    description: 'Who has to wait before the next sign-in.'
  }
)

export const limitsSchema = Type.Object(
  {
    sizes,
    expressions: expressionsSchema,
    replicas: Type.Unsafe<'counted' | number>(
      Type.Union(
        [Type.String({ enum: ['counted'] }), Type.Integer({ minimum: 1, maximum: 1000 })],
        {
          default: 'counted',
          expected: 'counted, or a whole number from 1 on',
          description:
            'How many gateways share the counters in Redis. While Redis is away each allows its part of a limit; while it is there, all together exceed a limit by a hundredth at most, which each uses before it tells the others. `counted`: each process says every second that it is there.'
        }
      )
    ),
    ipv6Prefix: whole({
      minimum: 32,
      maximum: 128,
      default: 64,
      description:
        'So many leading bits of an IPv6 address count as one address; a customer usually has a /64, sometimes a /56.'
    }),
    headers: oneOf(['always', 'refused', 'never'], {
      default: 'always',
      description:
        'Which answers tell the limits, in `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).'
    }),
    inFlightPerRoute: named(whole({ minimum: 1, maximum: 100_000, description: 'How many.' }), {
      description:
        'Requests of a route at the same time in one process, by its name; more are 503.',
      examples: [{ reports: 4 }]
    }),
    lockout,
    inFlightPerUser: whole({
      minimum: 1,
      maximum: 10_000,
      default: 48,
      description: 'Requests of one user (or one address that is not signed in) at the same time.'
    }),
    endedSessions: Type.Object(
      {
        max: whole({
          minimum: 1,
          maximum: 1_000_000_000,
          default: 3000,
          description: 'How many are allowed in a window.'
        }),
        window: lifetime({ default: '1m', description: 'How long a window is.' })
      },
      {
        additionalProperties: false,
        default: {},
        description:
          'Requests with the genuine cookie of a session that is over, such as those of ' +
          'tabs that were left open; they are answered 401. Each such session is counted by itself, ' +
          'and in no limit by address, so that it takes nothing from those who have yet to sign in. ' +
          'A cookie that this gateway did not sign counts as none.'
      }
    ),
    inFlightSignIns: whole({
      minimum: 1,
      maximum: 10_000,
      default: 200,
      description:
        'Sign-ins from one address at the same time, those that wait for others of the ' +
        'address included. They count here and not in `inFlightPerUser`.'
    }),
    limits: named(limit, {
      description: 'Limits, by name; several may hold for one request.',
      default: {
        'signed-in': { by: 'user', max: 600, window: '1m' },
        'anonymous': { by: 'address', max: 120, window: '1m' }
      }
    })
  },
  {
    additionalProperties: false,
    default: {},
    title: 'limits.yaml',
    description: 'Live config: limits, lockout and sizes.'
  }
)

export type LimitsConfig = Static<typeof limitsSchema>
export type LockoutConfig = LimitsConfig['lockout']
export type LimitConfig = LimitsConfig['limits'][string]
