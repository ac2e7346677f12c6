/** What three replicas with one Redis know together: limits, guesses and lockouts. */
import t, { type Test } from 'tap'
import {
  type CallOptions,
  cookieOf,
  password,
  type TestGateway,
  testGateway
} from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const redis = await testRedis(t.teardown)
/** The back-end knows each user by one password, and counts those that it is asked about. */
let asked = 0
const backend = await testUpstream(t.teardown, (_request, response, { url, body }) => {
  if (url !== '/login') return response.end('{}')
  asked++
  const { username: id, password: typed } = JSON.parse(body.toString()) as Record<string, string>
  const isRight = typed === password
  return response
    .writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' })
    .end(JSON.stringify(isRight ? { code: 0, id } : { code: 1 }))
})
const limit = (max: number, name: string) => {
  return { by: 'address', max, window: '1h', routes: [name] }
}
const files = {
  gateway: { server: { trustedProxies: ['127.0.0.1'] } },
  // Of much patience: whatever fails here, it is not for a moment in which this machine stood still.
  redis: { url: redis.url, commandTimeout: '30s' },
  backend: backend.url,
  source: { outcomes: [{ is: 'success', path: 'code', in: [0] }] },
  routes: { routes: { many: { access: 'public' }, few: { access: 'public' } } },
  limits: { limits: { many: limit(400, 'many'), few: limit(30, 'few') }, lockout: {} }
}
const all = await Promise.all([1, 2, 3].map(() => testGateway(t.teardown, files)))

/** A call of a client at this address, at one of the three. */
const call = (index: number, address: string, path: string, options: CallOptions = {}) =>
  (all[index % 3] as TestGateway).call(path, {
    ...options,
    headers: { 'x-forwarded-for': address }
  })
const signIn = (index: number, username: string, typed: string, address: string, cookie?: string) =>
  call(index, address, '/api/auth/admin/login', {
    json: { username, password: typed },
    ...(cookie !== undefined && { cookie })
  })
/** 200 guesses at once: so many are looked at, and all others locked out. */
async function guess(t: Test, looked: number, of: (index: number) => [string, string]) {
  const before = asked
  const guesses = Array.from({ length: 200 }, async (_, index) => {
    const [name, address] = of(index)
    return (await signIn(index, name, 'wrong', address)).status
  })
  const counts = Map.groupBy(await Promise.all(guesses), status => status)
  const refused = [...counts].map(([status, all]) => [status, all.length])
  t.same(Object.fromEntries(refused), { 401: looked, 429: 200 - looked })
  t.equal(asked - before, looked)
}
const home = '203.0.113.7'

/** Counts have connections of their own; until they are there, each process counts by itself. */
async function countInRedis(round: string) {
  const isTold = async (key: string) => (await redis.cli('EXISTS', key)) === '1'
  for (const [index, { ready }] of all.entries()) {
    await ready()
    const [name, address] = [`${round}-${index}`, `192.0.2.${index}`]
    await until('it counts in Redis', async () => {
      await Promise.all([
        signIn(index, name, 'wrong', address),
        call(index, address, '/api/many'),
        call(index, address, '/api/few')
      ])
      return (await isTold(`{cg}:f:account ${name}`)) && (await isTold(`{cg}:l:a:${address}`))
    })
  }
}
await countInRedis('first')

t.test('of 200 guesses from one address 5 are looked at, and the owner comes in', async t => {
  const attacker = '198.51.100.201'
  const known = cookieOf(await signIn(0, 'alice', password, home), 'console_known')
  await guess(t, 5, () => ['alice', attacker])
  t.equal((await signIn(1, 'alice', password, home)).status, 200, 'from elsewhere')
  t.equal((await signIn(2, 'alice', password, attacker)).status, 429)
  t.equal((await signIn(2, 'alice', password, attacker, known)).status, 200, 'even from there')
})

t.test('of 200 guesses from 200 addresses 50 are looked at, and the owner comes in', async t => {
  const known = cookieOf(await signIn(0, 'bob', password, home), 'console_known')
  await guess(t, 50, index => ['bob', `198.51.100.${index}`])
  t.equal((await signIn(1, 'bob', password, home)).status, 429, 'a browser that nobody knows')
  for (const index of all.keys()) {
    t.equal((await signIn(index, 'bob', password, home, known)).status, 200, `replica ${index}`)
  }
  t.same(await all[0]?.opsJson('lockouts/lift', { account: 'bob' }), { lifted: 1 })
  t.equal((await signIn(2, 'bob', password, home)).status, 200, 'a lock that another one lifted')
})

t.test('of 200 guesses at 200 accounts from one address 20 are looked at', async t => {
  await guess(t, 20, index => [`user-${index}`, '198.51.100.202'])
})

t.test('a limit is kept together, whichever of them is asked', async t => {
  let passed = 0
  for (let round = 0; round < 50; round++) {
    // At the same time, and not evenly.
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => call(index * index + round, home, '/api/many'))
    )
    passed += answers.filter(({ status }) => status === 200).length
  }
  t.ok(passed >= 400 && passed <= 460, `${passed} of 400`)
})

t.test('Redis killed in between: no more pass than each knew to be left', async t => {
  const passes = async (requests: number) => {
    let passed = 0
    for (let index = 0; index < requests; index++) {
      const { status } = await call(index, home, '/api/few')
      if (status === 200) passed++
      else t.equal(status, 429)
    }
    return passed
  }
  t.equal(await passes(20), 20)
  await redis.kill()
  t.equal(await passes(60), 10 + 11 + 12, 'the last was told of all 20')
  const away = new Set<number>()
  for (let index = 0; index < 6; index++) {
    away.add((await signIn(1, 'carol', 'wrong', home)).status)
  }
  t.ok(away.has(429), 'no end of guesses meanwhile')
  await redis.start()
  await countInRedis('again')
  t.ok((await passes(150)) <= 30)
})
