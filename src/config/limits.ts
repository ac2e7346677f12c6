/** Live config, `limits.yaml`: how much, how large, how often. */
import { Type, type Static } from 'typebox'
import { duration, flag, list, name, named, oneOf, size, whole } from './primitives.ts'
import { expressionsSchema } from './shapes.ts'

const limit = Type.Object({
  by: oneOf(['address', 'account', 'user'], { description: 'Whom it counts: `address`, callers who are not signed in (an IPv6 /64 counts as one); `user`, callers who are; `account`, the user name that a sign-in tries.' }),
  max: whole({ minimum: 1, maximum: 1_000_000_000, description: 'How many are allowed.' }),
  window: duration({ description: 'In this time, counted from the first.' }),
  routes: list(name({ description: 'A route, or one of login, logout, profile, session.' }), { default: [], description: 'Where it holds; everywhere under the public paths without it.' }),
  refusedOnly: flag({ default: false, description: 'For sign-in: count only attempts that are refused. Each is counted before the password is looked at, and given back when it was right.' })
}, { additionalProperties: false, description: 'A limit.' })

const sizes = Type.Object({
  body: size({ default: '1MiB', description: 'The largest request body, proxied ones included; a route may say otherwise.' }),
  login: size({ default: '4KiB', description: 'The largest sign-in body.' }),
  url: size({ default: '8KiB', description: 'The longest path with query.' }),
  headerCount: whole({ minimum: 10, maximum: 1000, default: 100, description: 'The most header lines of a request.' }),
  shape: size({ default: '2MiB', description: 'The largest answer that is shaped; beyond it 502, never a cut answer.' })
}, { additionalProperties: false, default: {}, description: 'Sizes. Header fields together are held to 16 KiB.' })

export const limitsSchema = Type.Object({
  sizes,
  expressions: expressionsSchema,
  inFlightPerUser: whole({ minimum: 1, maximum: 10_000, default: 48, description: 'Requests of one user (or one address that is not signed in) at the same time.' }),
  limits: named(limit, {
    description: 'Limits, by name; several may hold for one request.',
    default: {
      'sign-in-address': { by: 'address', max: 10, window: '1m', routes: ['login'], refusedOnly: true },
      'sign-in-account': { by: 'account', max: 5, window: '10m', routes: ['login'], refusedOnly: true },
      'signed-in': { by: 'user', max: 600, window: '1m' },
      anonymous: { by: 'address', max: 120, window: '1m' }
    }
  })
}, { additionalProperties: false, default: {}, title: 'limits.yaml', description: 'Live config: limits and sizes.' })

export type LimitsConfig = Static<typeof limitsSchema>
export type LimitConfig = LimitsConfig['limits'][string]
