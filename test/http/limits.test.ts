/** Limits by user, address, session and route: who is over one gets 429, and nobody else. */
import { connect } from 'node:net'
import t from 'tap'
import { type CallOptions, password, testGateway, type TestGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { loginPath as login } from '../support/wire.ts'

const profile = '/api/account/profile'
const window = '1h'

/** The back-end answers `/api/slow` and the like when the functions in `waiting` are called. */
const waiting: Array<() => void> = []
const backend = await testUpstream(t.teardown, (incoming, response, seen) => {
  const answer = () => json(200, {})(incoming, response, seen)
  if (seen.url.startsWith('/api/slow')) waiting.push(answer)
  else answer()
})
/** A limit for each route, so that no test counts for another. */
const gateway = await testGateway(t.teardown, {
  backend: backend.url,
  routes: {
    aliases: { '/api/alias': '/api/alone' },
    routes: {
      user: {},
      alone: {},
      other: {},
      burst: {},
      watched: {},
      slow: {},
      several: { methods: ['GET', 'POST'] }
    }
  },
  limits: {
    inFlightPerUser: 3,
    limits: {
      user: { by: 'user', max: 3, window: '1m', routes: ['user'] },
      alone: { by: 'user', max: 1, window, routes: ['alone'] },
      burst: { by: 'user', max: 10, window, burst: 2, routes: ['burst'] },
      tight: { by: 'user', max: 2, window, routes: ['watched'] },
      watching: { by: 'user', max: 1, window, mode: 'shadow', routes: ['watched'] },
      polls: { by: 'user', max: 30, window, routes: ['profile'] },
      strangers: { by: 'address', max: 3, window, routes: ['profile'] },
      all: { by: 'user', max: 100, window, routes: ['several'] },
      writes: { by: 'user', max: 1, window, methods: ['POST'], routes: ['several'] },
      admins: { by: 'session', max: 3, window, roles: ['admin'], routes: ['several'] }
    }
  }
})
const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]

type Call = readonly [path: string, options?: CallOptions | undefined]

/** The statuses of calls one after the other. */
const statuses = async (at: TestGateway, calls: readonly Call[]) =>
  await Array.fromAsync(calls, async ([path, options]) => await at.status(path, options))
const times = (number: number, path: string, options?: CallOptions): Call[] =>
  Array.from({ length: number }, () => [path, options])

t.test('a user over the limit gets 429 with Retry-After; another user does not', async t => {
  const told = (headers: Headers, left: number) => {
    t.match(headers.get('ratelimit'), new RegExp(`^"user";r=${left};t=(60|[1-5]?\\d)$`))
    t.equal(headers.get('ratelimit-policy'), '"user";q=3;w=60')
  }
  for (let left = 2; left >= 0; left--) {
    told((await gateway.call('/api/user', { cookie: alice })).headers, left)
  }
  const refused = await gateway.call('/api/user', { cookie: alice })
  t.match(refused, { status: 429, json: { errorCode: 'limit.exceeded', message: /\w/ } })
  told(refused.headers, 0)
  const retryAfter = Number(refused.headers.get('retry-after'))
  t.ok(retryAfter > 0 && retryAfter <= 60)
  t.equal(await gateway.status('/api/user', { cookie: bob }), 200)
})

t.test('a limit of a route holds there alone, and a bucket lets so many pass at once', async t => {
  const given = { cookie: alice }
  t.same(await statuses(gateway, times(2, '/api/alone', given)), [200, 429])
  t.same(await statuses(gateway, times(1, '/api/alias', given)), [429])
  t.same(await statuses(gateway, times(1, '/api/other', given)), [200])
  t.same(await statuses(gateway, times(3, '/api/burst', given)), [200, 200, 429])
})

t.test('a limit in shadow refuses nobody; who gets over one is logged once', async t => {
  const calls = times(6, '/api/watched', { cookie: alice })
  t.same(await statuses(gateway, calls), [200, 200, 429, 429, 429, 429])
  const lines = gateway.log.filter(
    ({ event, limit }) => event === 'limit.over' && /tight|watching/.test(String(limit))
  )
  t.match(lines, [
    { limit: 'watching', mode: 'shadow', user: 'alice', requestId: /./ },
    { limit: 'tight', mode: 'enforce', user: 'alice' }
  ])
  t.equal(lines.length, 2)
  const metrics = await gateway.metrics()
  t.match(metrics, 'console_gateway_limit_shadowed_total{limit="watching"} 1\n')
  const { headers } = await gateway.call('/api/watched', { cookie: bob })
  t.match(headers.get('ratelimit'), /^"tight";r=1;t=\d+$/, 'whom it is not told')
})

t.test('several limits hold for one request, and the field names each', async t => {
  const call = async (cookie: string, method = 'GET') => {
    const { status, headers } = await gateway.call('/api/several', { cookie, method })
    return [status, headers.get('ratelimit')?.replaceAll(/;t=\d+/g, '')]
  }
  t.same(await call(bob), [200, '"all";r=99'])
  t.same(await call(bob, 'POST'), [200, '"all";r=98, "writes";r=0'])
  // What is refused is not counted by the others.
  t.same(await call(bob, 'POST'), [429, '"all";r=98, "writes";r=0'])
  t.same(await call(alice), [200, '"all";r=99, "admins";r=2'])
  t.same(await call(alice), [200, '"all";r=98, "admins";r=1'])
  const again = await gateway.signIn('alice')
  t.same(await call(again), [200, '"all";r=97, "admins";r=2'], 'another session of hers')
})

t.test('requests of one user at the same time are bounded; others go on', async t => {
  const slow = async () => await gateway.call('/api/slow', { cookie: alice })
  const running = [slow(), slow(), slow()]
  await until('they wait at the back-end', () => waiting.length === 3)
  t.match(await slow(), { status: 429, json: { errorCode: 'limit.exceeded' } })
  t.equal(await gateway.status(profile, { cookie: bob }), 200)
  for (const answer of waiting.splice(0)) answer()
  for (const { status } of await Promise.all(running)) t.equal(status, 200)
  t.equal(await gateway.status(profile, { cookie: alice }), 200, 'room again')
})

t.test('who is not signed in is counted by address, whatever is asked for', async t => {
  const anonymous = await testGateway(t.after, {
    backend: backend.url,
    routes: { routes: { open: { access: 'public' } } },
    limits: { limits: { anonymous: { by: 'address', max: 3, window: '1m' } } }
  })
  const before = backend.seen.length
  const forged = (last: number) => ({ headers: { 'x-forwarded-for': `198.51.100.${last}` } })
  const paths = ['/api/nothing', profile, '/api/open', '/api/open', '/api/nothing']
  const calls = paths.map((path, index) => [path, forged(index)] as const)
  // Forwarded addresses count only from a proxy that config trusts.
  t.same(await statuses(anonymous, calls), [404, 401, 200, 429, 429])
  t.equal(backend.seen.length, before + 1)
  const cookie = await anonymous.signIn()
  const own = await statuses(anonymous, times(20, profile, { cookie }))
  t.same(new Set(own), new Set([200]), 'once signed in, nobody uses up what others have')
})

t.test('who leaves while Redis is asked for the session keeps no place', async t => {
  const redis = await testRedis(t.after)
  const own = await testGateway(t.after, {
    redis: { url: redis.url, commandTimeout: '30s' },
    backend: backend.url,
    routes: { routes: { orders: {} } },
    limits: { inFlightPerUser: 3, limits: {} }
  })
  await own.ready()
  const cookie = await own.signIn()
  const begun = backend.begun()
  redis.signal('SIGSTOP')
  for (let left = 1; left <= 3; left++) {
    const line = connect(Number(new URL(own.url).port), '127.0.0.1')
    line.write(request('GET /api/orders', [`Cookie: ${cookie}`]))
    const next = await raw(own.url, request('GET /api/nothing'))
    t.equal(next.status, 404, 'what was sent before has arrived')
    const from = own.log.length
    line.destroy()
    await own.logged(({ msg, status }) => msg === 'request' && status === 499, from)
  }
  redis.signal('SIGCONT')
  t.equal(await own.status('/api/orders', { cookie }), 200)
  t.equal(backend.begun(), begun + 1, 'nothing goes to a back-end for it')
})

t.test('sign-in has budgets of its own: whoever used up all others can still sign in', async t => {
  const own = await testGateway(t.after, {
    backend: backend.url,
    routes: { routes: { slow: { access: 'public' } } },
    limits: {
      inFlightPerUser: 2,
      limits: {
        anonymous: { by: 'address', max: 5, window },
        some: { by: 'address', max: 4, window, routes: ['login', 'profile'] }
      }
    }
  })
  const right = { json: { username: 'alice', password } }
  const held = [own.call('/api/slow'), own.call('/api/slow')]
  await until('no place is left for another request', () => waiting.length === 2)
  t.equal(await own.status('/api/slow'), 429, 'too many at the same time')
  t.equal(await own.status(login, right), 200)
  waiting.splice(0).forEach(answer => answer())
  await Promise.all(held)
  t.same(await statuses(own, times(4, profile)), [401, 401, 401, 429])
  const signIns = await statuses(own, times(3, login, right))
  t.same(signIns, [200, 200, 200], 'of a limit for sign-in and others each has its own')
  const { status, headers } = await own.call(login, right)
  t.equal(status, 429, 'and the limit holds for sign-in as well')
  t.match(headers.get('ratelimit-policy'), /^"some"/)
})

t.test('guesses with the cookie of a live session count by address as those without', async t => {
  const own = await testGateway(t.after, {
    limits: {
      limits: {
        tries: { by: 'address', max: 2, window, routes: ['login'] },
        both: { by: 'user', max: 1, window, routes: ['login', 'profile'] }
      }
    }
  })
  // Of the two that are allowed, this sign-in is one.
  const cookie = await own.signIn('alice')
  const guess = { cookie, json: { username: 'bob', password: 'wrong' } }
  const { headers } = await own.call(login, guess)
  t.equal(headers.get('ratelimit-policy'), '"tries";q=2;w=3600')
  t.same(await statuses(own, times(3, login, guess)), [429, 429, 429])
  const line = await own.logged(({ event }) => event === 'limit.over')
  t.match(line, { limit: 'tries', address: '127.0.0.1' })
})

t.test('tabs of ended sessions that poll take nothing from others, and hear 401', async t => {
  const [one, other] = [await gateway.signIn(), await gateway.signIn()]
  for (const cookie of [one, other]) await gateway.call('/api/account/logout', { cookie })
  const ended = { status: 401, json: { errorCode: 'session.revoked' } }
  t.match(await gateway.call(profile, { cookie: one }), ended)
  const polls = async (cookie: string, number: number) =>
    await statuses(gateway, times(number, profile, { cookie }))
  t.same(new Set(await polls(one, 29)), new Set([401]))
  t.same(await polls(one, 2), [429, 429])
  t.same(await polls(other, 2), [401, 401], 'each by itself')
  const { headers } = await gateway.call(profile)
  t.match(headers.get('ratelimit'), /^"strangers";r=2;/, 'who has none has the whole budget')
  const forged = `${other.slice(0, -8)}AAAAAAAA`
  t.same(await polls(forged, 4), [401, 401, 429, 429], 'a forged cookie counts by address')
  t.same(await polls(other, 1), [401])
})
