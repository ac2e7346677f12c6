import { connect } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { password, testGateway } from '../../support/gateway.ts'
import { raw, request } from '../../support/raw.ts'
import { until } from '../../support/until.ts'
import { testRedis } from '../../support/redis.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const login = '/api/auth/admin/login'
const profile = '/api/account/profile'

t.test(
  'a user over the limit gets 429 in the envelope, with Retry-After; another user does not',
  async t => {
    const gateway = await testGateway(t.after, {
      limits: { limits: { user: { by: 'user', max: 3, window: '1m' } } }
    })
    const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
    for (let i = 0; i < 3; i++) {
      const { headers } = await gateway.call(profile, { cookie: alice })
      t.match(headers.get('ratelimit'), new RegExp(`^"user";r=${2 - i};t=(60|[1-5]?\\d)$`))
      t.equal(headers.get('ratelimit-policy'), '"user";q=3;w=60')
    }
    const refused = await gateway.call(profile, { cookie: alice })
    t.match(refused, { status: 429, json: { errorCode: 'limit.exceeded', message: /\w/ } })
    t.ok(
      Number(refused.headers.get('retry-after')) > 0 &&
        Number(refused.headers.get('retry-after')) <= 60
    )
    t.equal((await gateway.call(profile, { cookie: bob })).status, 200)
  }
)

t.test(
  'who is not signed in is counted by address: unknown paths, refused calls and public routes together',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: { open: { path: '/api/open', access: 'public', upstream: 'b' } }
      },
      limits: { limits: { anonymous: { by: 'address', max: 3, window: '1m' } } }
    })
    t.same(
      [
        (await gateway.call('/api/nothing')).status,
        (await gateway.call(profile)).status,
        (await gateway.call('/api/open')).status,
        (await gateway.call('/api/open')).status,
        (await gateway.call('/api/nothing')).status
      ],
      [404, 401, 200, 429, 429]
    )
    t.equal(backend.seen.length, 1)
  }
)

t.test(
  'colleagues behind one address do not use up each other’s allowance once they are signed in',
  async t => {
    const gateway = await testGateway(t.after, {
      limits: { limits: { anonymous: { by: 'address', max: 2, window: '1m' } } }
    })
    const cookie = await gateway.signIn()
    for (let i = 0; i < 20; i++) t.equal((await gateway.call(profile, { cookie })).status, 200)
  }
)

t.test('a limit of a route holds there alone', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { a: { path: '/api/a', upstream: 'b' }, other: { path: '/api/b', upstream: 'b' } }
    },
    limits: { limits: { a: { by: 'user', max: 1, window: '1m', routes: ['a'] } } }
  })
  const cookie = await gateway.signIn()
  t.same(
    [
      (await gateway.call('/api/a', { cookie })).status,
      (await gateway.call('/api/a', { cookie })).status,
      (await gateway.call('/api/b', { cookie })).status
    ],
    [200, 429, 200]
  )
})

t.test(
  'failed sign-ins of one account are held up, also from other addresses and in other spellings',
  async t => {
    const gateway = await testGateway(t.after, {
      gateway: { server: { trustedProxies: ['127.0.0.1'] } },
      limits: {
        lockout: { account: { failures: 5, every: '10m' } },
        limits: {}
      }
    })
    const spellings = ['alice', 'ALICE', ' alice ', 'ａlice', 'al\u200bice', 'Alice']
    const answers = []
    for (const [index, username] of spellings.entries()) {
      answers.push(
        await gateway.call(login, {
          json: { username, password: 'wrong' },
          headers: { 'x-forwarded-for': `198.51.100.${index}` }
        })
      )
    }
    t.same(
      answers.map(({ status }) => status),
      [401, 401, 401, 401, 401, 429]
    )
    t.match(answers.at(-1)?.json, { errorCode: 'login.locked' })
    t.ok(Number(answers.at(-1)?.headers.get('retry-after')) > 0)
    t.equal(
      (await gateway.call(login, { json: { username: 'bob', password } })).status,
      200,
      'others can sign in'
    )
  }
)

t.test('right passwords are not counted: a whole office may sign in', async t => {
  const gateway = await testGateway(t.after, {
    limits: {
      lockout: {
        accountAndAddress: { failures: 3, every: '1m' },
        address: { failures: 3, every: '1m' },
        account: { failures: 3, every: '1m' }
      },
      limits: {}
    }
  })
  for (let i = 0; i < 8; i++) {
    t.equal((await gateway.call(login, { json: { username: 'alice', password } })).status, 200)
  }
})

t.test('parallel guesses do not slip past', async t => {
  const gateway = await testGateway(t.after, {
    limits: {
      inFlightPerUser: 1000,
      lockout: { account: { failures: 5, every: '1m' } },
      limits: {}
    }
  })
  const answers = await Promise.all(
    Array.from({ length: 30 }, () =>
      gateway.call(login, { json: { username: 'alice', password: 'wrong' } })
    )
  )
  t.equal(answers.filter(({ status }) => status === 401).length, 5)
  t.equal(answers.filter(({ status }) => status === 429).length, 25)
})

t.test('forwarded addresses count only from a proxy that config trusts', async t => {
  const forged = await testGateway(t.after, {
    limits: { limits: { anonymous: { by: 'address', max: 2, window: '1m' } } }
  })
  const from = (gateway: typeof forged, address: string) =>
    gateway.call(profile, { headers: { 'x-forwarded-for': address } })
  t.same(
    [
      (await from(forged, '1.1.1.1')).status,
      (await from(forged, '2.2.2.2')).status,
      (await from(forged, '3.3.3.3')).status
    ],
    [401, 401, 429]
  )
  const trusted = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.0/8'] } },
    limits: { limits: { anonymous: { by: 'address', max: 1, window: '1m' } } }
  })
  t.same(
    [
      (await from(trusted, '1.1.1.1')).status,
      (await from(trusted, '2.2.2.2')).status,
      (await from(trusted, '2.2.2.2')).status
    ],
    [401, 401, 429]
  )
})

t.test('an IPv6 /64 counts as one, and IPv4 in IPv6 dress as IPv4', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    limits: { limits: { anonymous: { by: 'address', max: 1, window: '1m' } } }
  })
  const from = async (address: string) =>
    (await gateway.call(profile, { headers: { 'x-forwarded-for': address } })).status
  t.same(
    [
      await from('2001:db8::1'),
      await from('2001:db8::2'),
      await from('2001:db8:0:1::1'),
      await from('192.0.2.1'),
      await from('::ffff:192.0.2.1'),
      await from('192.0.2.1:4711'),
      await from('[2001:db8:0:1::2]:80')
    ],
    [401, 429, 401, 401, 429, 429, 429]
  )
})

t.test(
  'who gets over a limit is logged once until it is over, and with what; also for a limit in shadow',
  async t => {
    const gateway = await testGateway(t.after, {
      limits: {
        limits: {
          tight: { by: 'user', max: 2, window: '1h' },
          shy: { by: 'user', max: 1, window: '1h', mode: 'shadow' }
        }
      }
    })
    const cookie = await gateway.signIn()
    for (let i = 0; i < 6; i++) await gateway.call(profile, { cookie })
    t.match(
      gateway.log.filter(({ event }) => event === 'limit.over'),
      [
        { limit: 'shy', mode: 'shadow', user: 'alice', requestId: /./ },
        { limit: 'tight', mode: 'enforce', user: 'alice' }
      ]
    )
    t.equal(gateway.log.filter(({ event }) => event === 'limit.over').length, 2)
  }
)

/** A gateway whose back-end answers `/api/slow` when the functions in `waiting` are called. */
async function withSlowBackend({ after }: Test, limits: Record<string, unknown>) {
  const waiting: Array<() => void> = []
  const backend = await testUpstream(after, (request, response) => {
    waiting.push(() => json(200, {})(request, response, {} as never))
  })
  const gateway = await testGateway(after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { slow: { path: '/api/slow', upstream: 'b' } }
    },
    limits
  })
  return { gateway, waiting }
}

t.test('requests of one user at the same time are bounded; others go on', async t => {
  const { gateway, waiting } = await withSlowBackend(t, { inFlightPerUser: 3, limits: {} })
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  const running = Array.from({ length: 3 }, () => gateway.call('/api/slow', { cookie: alice }))
  await until('three requests wait at the back-end', () => waiting.length >= 3)
  t.match(await gateway.call('/api/slow', { cookie: alice }), {
    status: 429,
    json: { errorCode: 'limit.exceeded' }
  })
  t.equal((await gateway.call(profile, { cookie: bob })).status, 200)
  for (const finish of waiting) finish()
  t.same(
    (await Promise.all(running)).map(({ status }) => status),
    [200, 200, 200]
  )
  t.equal((await gateway.call(profile, { cookie: alice })).status, 200, 'room again')
})

t.test(
  'several limits hold for one request; the field names each, and the one that is over refuses',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: { a: { path: '/api/a', methods: ['GET', 'POST'], upstream: 'b' } }
      },
      limits: {
        limits: {
          all: { by: 'user', max: 100, window: '1h' },
          writes: { by: ['user', 'address'], max: 1, window: '1h', methods: ['POST'] },
          admins: { by: 'session', max: 3, window: '1h', roles: ['admin'], routes: ['a'] }
        }
      }
    })
    const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
    const call = async (cookie: string, method = 'GET') => {
      const { status, headers } = await gateway.call('/api/a', { cookie, method })
      return [status, headers.get('ratelimit')?.replaceAll(/;t=\d+/g, '')]
    }
    t.same(await call(bob), [200, '"all";r=99'])
    t.same(await call(bob, 'POST'), [200, '"all";r=98, "writes";r=0'])
    t.same(
      await call(bob, 'POST'),
      [429, '"all";r=98, "writes";r=0'],
      'what is refused is not counted by the others'
    )
    t.same(await call(alice), [200, '"all";r=99, "admins";r=2'])
    t.same(await call(alice), [200, '"all";r=98, "admins";r=1'])
    const again = await gateway.signIn('alice')
    t.same(await call(again), [200, '"all";r=97, "admins";r=2'], 'another session of hers')
  }
)

t.test(
  'a limit in shadow refuses nobody, and tells whom it would have refused; one that is off does nothing',
  async t => {
    const gateway = await testGateway(t.after, {
      limits: {
        limits: {
          shy: { by: 'user', max: 1, window: '1h', mode: 'shadow' },
          gone: { by: 'user', max: 1, window: '1h', mode: 'off' }
        }
      }
    })
    const cookie = await gateway.signIn()
    for (let i = 0; i < 4; i++) {
      const { status, headers } = await gateway.call(profile, { cookie })
      t.equal(status, 200)
      t.equal(headers.get('ratelimit'), null)
    }
    t.match(
      await (await gateway.ops('/metrics')).text(),
      'console_gateway_limit_shadowed_total{limit="shy"} 3\n'
    )
  }
)

t.test('a bucket lets so many pass at once', async t => {
  const gateway = await testGateway(t.after, {
    limits: { limits: { burst: { by: 'user', max: 10, window: '1h', burst: 2 } } }
  })
  const cookie = await gateway.signIn()
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await gateway.call(profile, { cookie })).status)
  t.same(statuses, [200, 200, 429])
})

t.test('limits are told to who passes, and to who is refused', async t => {
  const gateway = await testGateway(t.after, {
    limits: { limits: { user: { by: 'user', max: 1, window: '1h' } } }
  })
  const cookie = await gateway.signIn()
  for (const status of [200, 429]) {
    const answer = await gateway.call(profile, { cookie })
    t.equal(answer.status, status)
    t.ok(answer.headers.has('ratelimit'))
  }
})

t.test('a route without a bound is not counted, whatever its name is', async t => {
  const waiting: Array<() => void> = []
  const backend = await testUpstream(t.after, (request, response) => {
    waiting.push(() => json(200, {})(request, response, {} as never))
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { constructor: { path: '/api/slow', upstream: 'b', access: 'public' } }
    }
  })
  const running = [gateway.call('/api/slow'), gateway.call('/api/slow')]
  await until('two requests wait at the back-end', () => waiting.length >= 2)
  waiting.splice(0).forEach(answer => answer())
  t.match(await Promise.all(running), [{ status: 200 }, { status: 200 }])
})

t.test('requests of a route at the same time are bounded', async t => {
  const { gateway, waiting } = await withSlowBackend(t, {
    inFlightPerRoute: { slow: 1 },
    limits: {}
  })
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  const running = gateway.call('/api/slow', { cookie: alice })
  await until('a request waits at the back-end', () => waiting.length >= 1)
  t.match(await gateway.call('/api/slow', { cookie: bob }), {
    status: 503,
    json: { errorCode: 'overloaded' }
  })
  waiting.splice(0).forEach(answer => answer())
  t.equal((await running).status, 200)
})

t.test(
  'who leaves while Redis is asked for the session keeps no place, and nothing goes to a back-end for it',
  async t => {
    const backend = await testUpstream(t.after)
    const redis = await testRedis(t.after)
    const gateway = await testGateway(
      t.after,
      {
        gateway: {
          redis: { url: redis.url, commandTimeout: '30s' },
          session: { secrets: ['${SECRET}'] }
        },
        routes: {
          upstreams: { b: { url: backend.url } },
          routes: { orders: { path: '/api/orders', upstream: 'b' } }
        },
        limits: { inFlightPerUser: 3, limits: {} }
      },
      { SECRET: 'a secret of at least thirty-two characters' }
    )
    await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
    const cookie = await gateway.signIn()
    redis.signal('SIGSTOP')
    const logged = () =>
      gateway.log.filter(({ msg, status }) => msg === 'request' && status === 499).length
    for (let left = 1; left <= 3; left++) {
      const line = connect(Number(new URL(gateway.url).port), '127.0.0.1')
      line.write(request('GET /api/orders', [`Cookie: ${cookie}`]))
      t.equal(
        (await raw(gateway.url, request('GET /api/nothing'))).status,
        404,
        'what was sent before has arrived'
      )
      line.destroy()
      await until('it is known that the client left', () => logged() === left)
    }
    redis.signal('SIGCONT')
    t.equal((await gateway.call('/api/orders', { cookie })).status, 200)
    t.equal(backend.begun(), 1)
  }
)

t.test(
  'a key in Redis that holds something else makes local what it counts, and is told',
  async t => {
    const server = await testRedis(t.after)
    const redis = new Redis(server.url)
    t.after(() => redis.disconnect())
    const tries = { by: 'address', max: 2, window: '1h', routes: ['login'] }
    const gateway = await testGateway(
      t.after,
      {
        gateway: {
          server: { trustedProxies: ['127.0.0.1'] },
          redis: { url: server.url, commandTimeout: '30s' },
          session: { secrets: ['${SECRET}'] }
        },
        limits: { limits: { tries } }
      },
      { SECRET: 'a secret of at least thirty-two characters' }
    )
    await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
    const foreign = '{cg}:l:a:198.51.100.1'
    await redis.lpush(foreign, 'x')
    const guess = async (address: string) => {
      const headers = { 'x-forwarded-for': address }
      const json = { username: 'alice', password: 'wrong' }
      return (await gateway.call(login, { headers, json })).status
    }
    const statuses: number[] = []
    for (let index = 0; index < 3; index++) statuses.push(await guess('198.51.100.1'))
    t.same(statuses, [401, 401, 429])
    t.equal(await guess('198.51.100.2'), 401)
    t.ok(await redis.hexists('{cg}:l:a:198.51.100.2', 'tries'))
    const told = gateway.log.filter(({ event }) => event === 'limits.foreign-key')
    t.match(told, [{ level: 'error', keys: [foreign], reason: /WRONGTYPE/ }])
    t.equal(told.length, 1, 'not for each attempt')
  }
)

t.test('sign-in has budgets of its own: whoever used up all others can still sign in', async t => {
  const waiting: Array<() => void> = []
  const backend = await testUpstream(t.after, (_request, response) => {
    waiting.push(() => response.end('{}'))
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { open: { path: '/api/open', access: 'public', upstream: 'b' } }
    },
    limits: {
      inFlightPerUser: 2,
      limits: {
        anonymous: { by: 'address', max: 5, window: '1h' },
        some: { by: 'address', max: 4, window: '1h', routes: ['login', 'profile'] }
      }
    }
  })
  const held = [gateway.call('/api/open'), gateway.call('/api/open')]
  await until('no place is left for another request', () => waiting.length === 2)
  t.equal((await gateway.call('/api/open')).status, 429, 'too many at the same time')
  t.equal((await gateway.call(login, { json: { username: 'alice', password } })).status, 200)
  waiting.splice(0).forEach(answer => answer())
  await Promise.all(held)
  const statuses = async (path: string, times: number) => {
    const found: number[] = []
    for (let index = 0; index < times; index++) found.push((await gateway.call(path)).status)
    return found
  }
  t.same(await statuses('/api/account/profile', 4), [401, 401, 401, 429])
  for (let index = 0; index < 3; index++) {
    t.equal(
      (await gateway.call(login, { json: { username: 'alice', password } })).status,
      200,
      'of a limit that names sign-in and others each has its own'
    )
  }
  const { status, headers } = await gateway.call(login, { json: { username: 'alice', password } })
  t.equal(status, 429, 'and the limit holds for sign-in as well')
  t.match(headers.get('ratelimit-policy'), /^"some"/)
})

t.test('guesses with the cookie of a live session count by address as those without', async t => {
  const gateway = await testGateway(t.after, {
    limits: {
      lockout: { accountAndAddress: 'off', address: 'off', account: 'off' },
      limits: {
        tries: { by: 'address', max: 2, window: '1h', routes: ['login'] },
        pair: { by: ['user', 'address'], max: 1, window: '1h', routes: ['login', 'profile'] }
      }
    }
  })
  // Of the two that are allowed, this sign-in is one.
  const cookie = await gateway.signIn('alice')
  const statuses: number[] = []
  for (let guess = 0; guess < 4; guess++) {
    const json = { username: 'bob', password: 'wrong' }
    const { status, headers } = await gateway.call(login, { cookie, json })
    statuses.push(status)
    t.equal(headers.get('ratelimit-policy'), '"tries";q=2;w=3600')
  }
  t.same(statuses, [401, 429, 429, 429])
  const line = await gateway.logged(({ event }) => event === 'limit.over')
  t.match(line, { limit: 'tries', address: '127.0.0.1' })
})

t.test(
  '30 tabs of ended sessions that poll take nothing from anybody else behind their address, and still hear 401',
  async t => {
    const gateway = await testGateway(t.after, {
      limits: { limits: { anonymous: { by: 'address', max: 10, window: '1h' } } }
    })
    const tabs = await Promise.all(Array.from({ length: 3 }, () => gateway.signIn()))
    for (const cookie of tabs) {
      t.equal((await gateway.call('/api/account/logout', { cookie })).status, 200)
    }
    for (let poll = 0; poll < 90; poll++) {
      t.match(await gateway.call(profile, { cookie: tabs[poll % 3] ?? '' }), {
        status: 401,
        json: { errorCode: 'session.revoked' }
      })
    }
    t.equal(
      (await gateway.call(profile)).status,
      401,
      'a browser without a session has its whole budget'
    )
    t.match((await gateway.call(profile)).headers.get('ratelimit'), /^"anonymous";r=8;/)
    t.equal((await gateway.call(login, { json: { username: 'alice', password } })).status, 200)
  }
)

t.test('an ended session has a budget of its own, and what is not signed is anonymous', async t => {
  const gateway = await testGateway(t.after, {
    limits: {
      limits: {
        user: { by: 'user', max: 4, window: '1h' },
        anonymous: { by: 'address', max: 3, window: '1h' }
      }
    }
  })
  const [one, other] = [await gateway.signIn(), await gateway.signIn()]
  for (const cookie of [one, other]) await gateway.call('/api/account/logout', { cookie })
  const statuses = async (cookie: string, times: number) => {
    const found: number[] = []
    for (let index = 0; index < times; index++) {
      found.push((await gateway.call(profile, { cookie })).status)
    }
    return found
  }
  t.same(await statuses(one, 6), [401, 401, 401, 401, 429, 429])
  t.same(await statuses(other, 2), [401, 401], 'each by itself')
  const forged = `${other.slice(0, -8)}AAAAAAAA`
  t.same(await statuses(forged, 5), [401, 401, 401, 429, 429], 'a forged cookie counts by address')
  t.same(await statuses(other, 1), [401])
})
