import t, { type Test } from 'tap'
import { Redis } from 'ioredis'
import { testAuthority } from '../support/authority.ts'
import { configFolder, password, testGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { redisCli } from '../support/redis-cli.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const profile = '/api/account/profile'
const secrets = ['${SESSION_SECRET}']
/** Of much patience: whatever fails here, it is not for a moment in which this machine stood still. */
const withRedis = (url: string, more: object = {}) => ({
  redis: { url, commandTimeout: '30s', ...more },
  session: { secrets }
})

/** Resolves once the gateway says ready. */
async function ready(gateway: TestGateway): Promise<void> {
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
}

interface Given {
  /** Further keys of its section of gateway.yaml. */
  readonly redis?: object
  readonly routes?: Record<string, unknown>
  readonly more?: Record<string, string>
}

async function gatewayWith(t: Test, url: string, { redis, routes = {}, more }: Given = {}) {
  const files = { gateway: withRedis(url, redis), routes }
  return await testGateway(t.after, files, { ...environment, ...more })
}

t.test('two replicas share sessions: sign in at one, use and sign out at the other', async t => {
  const redis = await testRedis(t.after)
  const [a, b] = [await gatewayWith(t, redis.url), await gatewayWith(t, redis.url)]
  await Promise.all([ready(a), ready(b)])
  const cookie = await a.signIn()
  t.match(await b.call(profile, { cookie }), { status: 200, json: { data: { username: 'alice' } } })
  t.equal((await b.call('/api/account/logout', { cookie })).status, 200)
  t.match(await a.call(profile, { cookie }), {
    status: 401,
    json: { errorCode: 'session.revoked' }
  })
})

/** A limit that counts what no other one does. */
const others = { others: { by: 'address', max: 10_000, window: '1h' } }

const open = (url: string) => ({
  upstreams: { b: { url } },
  routes: { open: { path: '/api/open', access: 'public', upstream: 'b' } }
})

/** Sends requests of a caller until one of them is counted in Redis. */
async function countsInRedis(port: number, caller: string, send: () => Promise<unknown>) {
  const counted = async () => await redisCli(port, 'HVALS', `{cg}:l:${caller}`)
  await until('it counts in Redis', async () => {
    const before = await counted()
    await send()
    return (await counted()) !== before
  })
}

/** Three of them, each of which has shown that it counts in Redis. */
async function three(
  cleanUp: (undo: () => unknown) => void,
  port: number,
  files: Parameters<typeof configFolder>[0] & object
): Promise<TestGateway[]> {
  const all = await Promise.all(
    [1, 2, 3].map(async () => testGateway(cleanUp, await configFolder(files), environment))
  )
  for (const gateway of all) {
    await ready(gateway)
    await countsInRedis(port, 'a:127.0.0.1', async () => await gateway.call('/api/nothing'))
  }
  await redisCli(port, 'DEL', '{cg}:l:a:127.0.0.1')
  return all
}

t.test('three replicas keep a limit together, whichever of them is asked', async t => {
  const redis = await testRedis(t.after)
  const backend = await testUpstream(t.after)
  const all = await three(t.after, redis.port, {
    gateway: withRedis(redis.url),
    routes: open(backend.url),
    limits: { limits: { anonymous: { by: 'address', max: 400, window: '1h' } } }
  })
  let passed = 0
  for (let round = 0; round < 50; round++) {
    // At the same time, and not evenly.
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        (all[(index * index + round) % 3] as TestGateway).call('/api/open')
      )
    )
    passed += answers.filter(({ status }) => status === 200).length
  }
  t.ok(passed >= 400 && passed <= 460, `${passed} of 400`)
})

t.test(
  'Redis killed in between: each replica lets pass what it knows to be left, and an empty Redis no more than once all',
  async t => {
    const redis = await testRedis(t.after)
    const backend = await testUpstream(t.after)
    const max = 30
    const all = await three(t.after, redis.port, {
      gateway: withRedis(redis.url),
      routes: open(backend.url),
      limits: { limits: { anonymous: { by: 'address', max, window: '1h' } } }
    })
    const passes = async (requests: number) => {
      let passed = 0
      for (let index = 0; index < requests; index++) {
        const { status } = await (all[index % 3] as TestGateway).call('/api/open')
        if (status === 200) passed++
        else t.equal(status, 429)
      }
      return passed
    }
    t.equal(await passes(20), 20)
    await redis.kill()
    t.equal(await passes(60), 10 + 11 + 12, 'the last was told of all 20')
    await redis.start()
    for (const gateway of all) {
      await until(
        'it counts in Redis again',
        async () =>
          !(await (await gateway.ops('/metrics')).text()).includes(
            'console_gateway_session_store_up{kind="redis"} 0'
          )
      )
    }
    t.ok((await passes(150)) <= max)
  }
)

t.test(
  'three replicas lock an account together, know a browser together, and lift a lock together',
  async t => {
    const redis = await testRedis(t.after)
    const all = await three(t.after, redis.port, {
      gateway: { ...withRedis(redis.url), server: { trustedProxies: ['127.0.0.1'] } },
      limits: { lockout: { account: { failures: 6, every: '10h' } }, limits: others }
    })
    const [a, b, c] = all as [TestGateway, TestGateway, TestGateway]
    const login = (gateway: TestGateway, typed: string, address: number, cookie?: string) =>
      gateway.call('/api/auth/admin/login', {
        json: { username: 'alice', password: typed },
        headers: { 'x-forwarded-for': `198.51.100.${address}` },
        ...(cookie !== undefined && { cookie })
      })
    const known =
      (await login(a, password, 1)).headers
        .getSetCookie()
        .find(cookie => cookie.startsWith('console_known='))
        ?.split(';', 1)[0] ?? ''
    const statuses: number[] = []
    for (let index = 0; index < 12; index++) {
      statuses.push((await login(all[index % 3] as TestGateway, 'wrong', 10 + index)).status)
    }
    t.same(statuses, [...Array(6).fill(401), ...Array(6).fill(429)])
    t.same(
      [(await login(b, password, 2)).status, (await login(c, password, 2, known)).status],
      [429, 200]
    )
    const lifted = await a.ops('/ops/api/lockouts/lift', { json: { account: 'alice' } })
    t.same(await lifted.json(), { lifted: 1 })
    t.equal((await login(c, password, 2)).status, 200)
    await redis.kill()
    const away = new Set<number>()
    for (let index = 0; index < 30; index++) away.add((await login(b, 'wrong', 50 + index)).status)
    t.ok(away.has(429), 'no end of guesses while Redis is away')
  }
)

t.test(
  'Redis holds a hash of the id, with a time to live, and never the cookie’s value',
  async t => {
    const redis = await testRedis(t.after)
    const gateway = await gatewayWith(t, redis.url)
    await ready(gateway)
    const cookie = await gateway.signIn()
    const secretId = decodeURIComponent(cookie).split('=')[1]?.split('.')[0] ?? ''
    const client = new Redis(redis.url)
    t.teardown(() => client.disconnect())
    const [key = '', ...others] = await client.keys('{cg}:s:*')
    t.same(others, [])
    const stored = `${key} ${await client.get(key)}`
    t.ok(secretId.length === 48 && !stored.includes(secretId.slice(16)))
    t.ok((await client.pttl(key)) > 0)
  }
)

t.test('Redis away at start: up, alive, not ready, and it heals by itself', async t => {
  const redis = await testRedis(t.after)
  await redis.kill()
  const backend = await testUpstream(t.after)
  const gateway = await gatewayWith(t, redis.url, { routes: open(backend.url) })
  t.equal((await gateway.ops('/healthz')).status, 200)
  const notReady = await gateway.ops('/readyz')
  t.equal(notReady.status, 503)
  t.match(await notReady.json(), { redis: 'not reached yet' })
  t.match(
    await gateway.call('/api/auth/admin/login', {
      json: { username: 'alice', password: 'correct horse battery' }
    }),
    { status: 503, json: { errorCode: 'session.unavailable' } }
  )
  t.equal((await gateway.call('/api/open')).status, 200)
  await until('the log says that Redis is away', () =>
    gateway.log.some(({ msg }) => String(msg).startsWith('Redis unavailable'))
  )
  await redis.start()
  await ready(gateway)
  t.ok(await gateway.signIn())
})

t.test(
  'Redis killed and restarted under traffic: 200, 503 or, once it forgot, 401; never 500, never a hang',
  async t => {
    const redis = await testRedis(t.after)
    const backend = await testUpstream(t.after)
    const gateway = await gatewayWith(t, redis.url, { routes: open(backend.url) })
    await ready(gateway)
    const cookie = await gateway.signIn()
    const seen: Record<string, Set<number>> = {
      before: new Set(),
      away: new Set(),
      back: new Set()
    }
    const ask = async (phase: string) => {
      const answer = await gateway.call(profile, { cookie })
      seen[phase]?.add(answer.status)
      return answer
    }
    await Promise.all(Array.from({ length: 20 }, () => ask('before')))
    await redis.kill()
    for (let i = 0; i < 20; i++) {
      const answer = await ask('away')
      t.equal(answer.json.errorCode, 'session.unavailable')
      t.ok(Number(answer.headers.get('retry-after')) >= 1)
      t.same(answer.headers.getSetCookie(), [], 'the cookie is kept')
    }
    t.equal((await gateway.call('/api/open')).status, 200, 'a public route goes on')
    t.equal(
      (await gateway.call('/api/account/logout', { cookie })).status,
      503,
      'no sign-out is promised that was not done'
    )
    t.equal(
      (await gateway.call('/api/account/logout')).status,
      200,
      'without a session there is nothing to ask'
    )
    t.equal(
      (await gateway.ops('/readyz')).status,
      200,
      'still ready: the replicas next door have the same Redis'
    )
    await redis.start()
    await until('Redis answers again', async () => (await ask('back')).status !== 503)
    t.same(
      [
        [...(seen['before'] ?? [])],
        [...(seen['away'] ?? [])],
        [...(seen['back'] ?? [])].filter(status => status !== 503)
      ],
      [[200], [503], [401]],
      'a Redis that kept nothing knows no session'
    )
    // Writes have a connection of their own, which may come back later.
    await until('a session is stored again', async () => {
      const answer = await gateway.call('/api/auth/admin/login', {
        json: { username: 'alice', password }
      })
      if (answer.status !== 200) t.equal(answer.status, 503)
      return answer.status === 200
    })
  }
)

t.test(
  'a wrong Redis password: not ready, said once in plain words, and never in the log',
  async t => {
    const redis = await testRedis(t.after, ['--requirepass', 'right-password'])
    const gateway = await gatewayWith(t, redis.url, {
      redis: { password: '${REDIS_PASSWORD}' },
      more: { REDIS_PASSWORD: 'wrong-password' }
    })
    await until('the log names the password', () =>
      gateway.log.some(({ reason }) => String(reason).includes('password is wrong'))
    )
    t.equal((await gateway.ops('/readyz')).status, 503)
    t.notMatch(JSON.stringify(gateway.log), /wrong-password|right-password/)
  }
)

t.test('a rediss:// Redis with user and password is reached', async t => {
  const { key, certificate } = testAuthority(t.after)
  const port = await freePort()
  const files = { 'cert-file': certificate, 'key-file': key, 'ca-cert-file': certificate }
  const tls = Object.entries({ 'port': String(port), ...files, 'auth-clients': 'no' })
  await testRedis(t.after, [
    ...tls.flatMap(([name, value]) => [`--tls-${name}`, value]),
    ...['--user', 'gateway', 'on', '>pw', '~{cg}:*', '+@all']
  ])
  const gateway = await gatewayWith(t, `rediss://localhost:${port}`, {
    redis: { username: 'gateway', password: '${REDIS_PASSWORD}', ca: certificate },
    more: { REDIS_PASSWORD: 'pw' }
  })
  await ready(gateway)
  t.equal((await gateway.call(profile, { cookie: await gateway.signIn() })).status, 200)
})
