import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

/** A shaped response is parsed in one go, which blocks all requests of the process. */
const maxShaped = 64 * 1024 ** 2

/** The cookie of a known browser; its name begins with `__Host-` where cookies are Secure. */
export const knownBrowserCookie = 'console_known'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const number = { minimum: 1, maximum: 1_000_000_000 }
const concurrent = { minimum: 1, maximum: 10_000 }

const limit = s.closed(
  {
    by: s.text(
      'Whose requests are counted: `user`, `session`, `address` of those who are not signed ' +
        'in (and of sign-ins), all with the same `profile.MEMBER`, or each `key` for scripts.',
      {
        pattern: '^(?:address|user|session|key|profile\\.[A-Za-z0-9_.-]+)$',
        expected: 'address, user, session, key, or a member of the profile such as profile.tenantId'
      }
    ),
    max: s.whole('Requests in a window. One becomes free each `window` / `max`.', number),
    window: s.lifetime('The length of the window.'),
    burst: s.may.whole('Requests at once. Default: `max`.', number),
    mode: s.oneOf(
      ['enforce', 'shadow', 'off'],
      '`enforce`: refuse. `shadow`: only tell who would be refused. `off`: do not count.',
      { default: 'enforce' }
    ),
    routes: s.list(
      s.name('A route, or an endpoint such as `login`.', { names: 'route or endpoint' }),
      'Default: all public paths.'
    ),
    methods: s.list(s.oneOf(methods, 'An HTTP method.'), 'Default: all.'),
    roles: s.list(s.anyText, 'Of users. Default: everyone.')
  },
  'One limit.'
)

const sizes = s.section(
  {
    body: s.size('Of a request body. A route may say another one (`maxBody`).', {
      default: '1MiB',
      maximum: s.maxStreamedBytes
    }),
    url: s.size('Of a path with its query.', { default: '8KiB', maximum: 16 * 1024 }),
    shape: s.size('Of a shaped response, also decompressed.', {
      default: '2MiB',
      maximum: maxShaped
    })
  },
  'Maximum sizes. Headers: 16 KiB and 100 lines.'
)

function lock(failures: number, every: string, of: string) {
  const bucket = {
    failures: s.whole('Wrong passwords that may follow each other.', {
      minimum: 1,
      maximum: 100_000,
      default: failures
    }),
    every: s.lifetime('After these, one more in each such time.', { default: every })
  }
  return s.either(
    [Type.Literal('off'), s.closed(bucket, of)],
    `${of} Default: ${failures}, then one each ${every}.`,
    { default: {}, expected: '`off`, or `failures` and `every`' }
  )
}

const lockout = s.section(
  {
    accountAndAddress: lock(5, '5m', 'Wrong passwords for one account from one address.'),
    address: lock(20, '1m', 'Wrong passwords from one address, for any account.'),
    account: lock(50, '15m', 'Wrong passwords for one account, from any address.'),
    knownBrowser: s.flag(
      'Count browsers that signed in within 90 days apart, so that nobody locks the owner out.',
      { default: true }
    )
  },
  'Slows guessing down: with no failures left, sign-in is 429.'
)

export const limitsSchema = s.closed(
  {
    sizes,
    lockout,
    inFlightPerUser: s.whole('Concurrent requests of a user, or an address without a session.', {
      ...concurrent,
      default: 48
    }),
    inFlightSignIns: s.whole('Concurrent sign-ins from one address.', {
      ...concurrent,
      default: 200
    }),
    limits: s.named(limit, 'Limits, by name. Several can apply to one request.', {
      default: {
        'signed-in': { by: 'user', max: 600, window: '1m' },
        'anonymous': { by: 'address', max: 120, window: '1m' }
      }
    })
  },
  'Limits, lockout and sizes. A change takes effect without a restart.',
  { title: 'limits.yaml' }
)

export type LimitsConfig = Static<typeof limitsSchema>
export type LockoutConfig = LimitsConfig['lockout']
export type LimitConfig = LimitsConfig['limits'][string]
