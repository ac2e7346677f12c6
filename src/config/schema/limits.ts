/** `limits.yaml`: rate limits, concurrency, lockout and sizes. */
import { Type, type Static } from 'typebox'
import {
  lifetime,
  list,
  maxShaped,
  maxStreamedBytes,
  maybe,
  name,
  named,
  oneOf,
  oneOrMany,
  size,
  whole
} from './primitives.ts'
import { lockout } from './lockout.ts'

type Whom = 'address' | 'user' | 'session' | `profile.${string}`

const whom = Type.String({
  pattern: '^(?:address|user|session|profile\\.[A-Za-z0-9_.-]+)$',
  expected: 'address, user, session, or a member of the profile such as profile.tenantId',
  description: 'One kind of caller.'
})
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const limit = Type.Object(
  {
    by: oneOrMany<Whom>(
      whom,
      'What is counted. `address`: the address of callers who are not signed in, and of every ' +
        'sign-in. `user`: signed-in callers. `session`: one sign-in of a user. ' +
        '`profile.tenantId`: all users with the same value there, together; one without it is ' +
        'counted alone. A list such as `[user, address]` counts each combination separately.',
      {
        ofMany: 'Several: each combination is counted separately.',
        expected: 'address, user, session or profile.NAME, or a list of them'
      }
    ),
    max: whole(
      'How many requests are allowed in each window. A used request becomes free again ' +
        'evenly: after `window` divided by `max`.',
      { minimum: 1, maximum: 1_000_000_000, examples: [600] }
    ),
    window: lifetime('The length of the window.', { examples: ['1m'] }),
    burst: maybe(
      whole('How many requests may come at once. Default: `max`.', {
        minimum: 1,
        maximum: 1_000_000_000,
        examples: [20]
      })
    ),
    mode: oneOf(
      ['enforce', 'shadow', 'off'],
      '`enforce`: refuse requests over the limit. `shadow`: refuse nobody, but report in ' +
        'metrics and log who would have been refused; use it to try a new number. `off`: do not ' +
        'count.',
      { default: 'enforce' }
    ),
    routes: list(
      name('The name of a route, or `login`, `logout`, `profile` or `session`.', {
        names: 'route or endpoint'
      }),
      'The routes to which the limit applies. Default: all public paths.',
      { default: [], examples: [['orders', 'login']] }
    ),
    methods: list(
      oneOf([...methods], 'An HTTP method.'),
      'The methods to which the limit applies. Default: all.',
      { default: [], examples: [['POST', 'PUT', 'DELETE']] }
    ),
    roles: list(
      Type.String({ minLength: 1 }),
      'The roles to which the limit applies. Default: everyone.',
      { default: [], examples: [['viewer']] }
    )
  },
  { additionalProperties: false, description: 'One limit.' }
)

const sizes = Type.Object(
  {
    body: size(
      'The maximum size of a request body. A route can override it (`maxBody`). Increase it ' +
        'for uploads.',
      { default: '1MiB', maximum: maxStreamedBytes }
    ),
    login: size('The maximum size of a sign-in body.', { default: '4KiB', maximum: 1024 ** 2 }),
    url: size('The maximum length of a path with its query.', {
      default: '8KiB',
      maximum: 16 * 1024
    }),
    headerCount: whole('The maximum number of headers in a request.', {
      minimum: 10,
      maximum: 1000,
      default: 100
    }),
    shape: size(
      'The maximum size of a response that is shaped, both as received and after ' +
        'decompression. A route can choose what happens to a larger one (`tooLarge`).',
      { default: '2MiB', maximum: maxShaped }
    )
  },
  {
    additionalProperties: false,
    default: {},
    description: 'Maximum sizes. All headers together are limited to 16 KiB.'
  }
)

export const limitsSchema = Type.Object(
  {
    sizes,
    ipv6Prefix: whole(
      'How many leading bits of an IPv6 address count as one address. One customer usually ' +
        'has a /64, sometimes a /56.',
      { minimum: 32, maximum: 128, default: 64 }
    ),
    headers: oneOf(
      ['always', 'refused', 'never'],
      'Which responses have the `RateLimit` and `RateLimit-Policy` headers ' +
        '(draft-ietf-httpapi-ratelimit-headers): all, only refused ones, or none.',
      { default: 'always' }
    ),
    inFlightPerRoute: named(
      whole('The maximum number of requests.', { minimum: 1, maximum: 100_000 }),
      'The maximum number of concurrent requests in one process, by route name. More are ' +
        'answered 503. Use it for routes with slow or expensive requests.',
      { keysName: 'route or endpoint', examples: [{ reports: 4 }] }
    ),
    lockout,
    inFlightPerUser: whole(
      'The maximum number of concurrent requests of one user, or of one address that is not ' +
        'signed in.',
      { minimum: 1, maximum: 10_000, default: 48 }
    ),
    inFlightSignIns: whole(
      'The maximum number of concurrent sign-ins from one address, including those that wait ' +
        'for others. They do not count in `inFlightPerUser`.',
      { minimum: 1, maximum: 10_000, default: 200 }
    ),
    limits: named(limit, 'Limits, by name. Several can apply to one request.', {
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
    description: 'Limits, lockout and sizes. A change takes effect without a restart.'
  }
)

export type LimitsConfig = Static<typeof limitsSchema>
export type LockoutConfig = LimitsConfig['lockout']
export type LimitConfig = LimitsConfig['limits'][string]
