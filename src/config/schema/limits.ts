import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

/** A shaped response is parsed in one go, which blocks all requests of the process. */
const maxShaped = 64 * 1024 ** 2

/** The cookie of a known browser; its name begins with `__Host-` where cookies are Secure. */
export const knownBrowserCookie = 'console_known'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const limit = s.closed('One limit.', {
  by: s.text(
    'Whose requests are counted: `user`, `session`, `address` of those who are not signed ' +
      'in (and of sign-ins), all with the same `profile.MEMBER`, or each `key` for scripts.',
    {
      pattern: '^(?:address|user|session|key|profile\\.[A-Za-z0-9_.-]+)$',
      expected: 'address, user, session, key, or a member of the profile such as profile.tenantId'
    }
  ),
  max: s.count('Requests in a window. One becomes free each `window` / `max`.'),
  window: s.lifetime('The length of the window.'),
  burst: s.may.count('Requests at once. Default: `max`.'),
  mode: s.choice('`shadow`: only tell who would be refused.', ['enforce', 'shadow']),
  routes: s.list(
    'Default: all public paths.',
    s.name('A route, or an endpoint such as `login`.', { names: 'route or endpoint' })
  ),
  methods: s.list('Default: all.', s.oneOf('An HTTP method.', methods)),
  roles: s.list('Of users. Default: everyone.', s.text())
})

const sizes = s.section('Maximum sizes. Headers: 16 KiB and 100 lines.', {
  body: s.size('Of a request body. A route may say another one (`maxBody`).', {
    default: '1MiB',
    maximum: s.maxStreamedBytes
  }),
  url: s.size('Of a path with its query.', { default: '8KiB', maximum: 16 * 1024 }),
  shape: s.size('Of a shaped response, also decompressed.', { default: '2MiB', maximum: maxShaped })
})

function lock(failures: number, every: string, of: string) {
  const bucket = {
    failures: s.count('Wrong passwords that may follow each other.', { default: failures }),
    every: s.lifetime('After these, one more in each such time.', { default: every })
  }
  return s.either(
    `${of} Default: ${failures}, then one each ${every}.`,
    [Type.Literal('off'), s.closed(of, bucket)],
    { default: {}, expected: '`off`, or `failures` and `every`' }
  )
}

const lockout = s.section('Slows guessing down: with no failures left, sign-in is 429.', {
  accountAndAddress: lock(5, '5m', 'Wrong passwords for one account from one address.'),
  address: lock(20, '1m', 'Wrong passwords from one address, for any account.'),
  account: lock(50, '15m', 'Wrong passwords for one account, from any address.'),
  knownBrowser: s.flag('Count browsers of the last 90 days apart: nobody locks the owner out.', {
    default: true
  })
})

export const limitsSchema = s.closed('Limits, lockout, sizes. A change needs no restart.', {
  sizes,
  lockout,
  inFlightPerUser: s.count('Concurrent requests of a user, or an address without a session.', {
    default: 48
  }),
  inFlightSignIns: s.count('Concurrent sign-ins from one address.', { default: 200 }),
  limits: s.named('Limits, by name. Several can apply to one request.', limit, {
    default: {
      'signed-in': { by: 'user', max: 600, window: '1m' },
      'anonymous': { by: 'address', max: 120, window: '1m' }
    }
  })
})

export type LimitsConfig = Static<typeof limitsSchema>
export type LockoutConfig = LimitsConfig['lockout']
export type LimitConfig = LimitsConfig['limits'][string]
