/** Users whom operators block, or sign out: at each replica, of any source, at the back-end too. */
import t, { type Test } from 'tap'
import { setTimeout as sleep } from 'node:timers/promises'
import { testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

let given = 0
const signedOut: string[] = []
/** Its user `alice` is another one than that of the users file. */
const backend = await testUpstream(t.teardown, ({ url, headers }, response) => {
  if (url === '/logout') signedOut.push(String(headers.authorization).slice('Bearer '.length))
  else given++
  const user = { token: `t${given}`, id: 'X7', name: 'alice' }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(user))
})

async function gatewayOf(t: Test, redis?: string) {
  const gateway = await testGateway(t.after, {
    gateway: {
      login: { sources: { 'users-file': { kind: 'users-file' } } },
      session: { perUser: { max: 5 } },
      identity: { prefix: true }
    },
    redis,
    backend: { url: backend.url, credential: 'bearer' },
    source: { token: 'token', user: { id: 'id', username: 'name' }, logout: { path: '/logout' } },
    limits: { lockout: { account: { failures: 2, every: '1h' } } }
  })
  const isSignedIn = async (cookie: string) =>
    (await gateway.status('/api/account/profile', { cookie })) === 200
  return { ...gateway, isSignedIn }
}

/** `alice` signs in at the users file, `shopper` at the back-end, which calls her `alice` too. */
const names = ['alice', 'bob', 'shopper'] as const
const blocks = [
  [{ name: ' ALICE' }, ['alice', 'shopper'], { name: 'Alice' }],
  [{ name: 'alice', source: 'users-file' }, ['alice'], { name: 'alice' }],
  [{ name: 'x7', source: 'b', forMs: 3_600_000 }, ['shopper'], { name: 'x7', source: 'b' }],
  [{ name: '2' }, ['bob'], { name: '2' }]
] as const

for (const kind of ['memory', 'redis']) {
  t.test(`U5, ${kind}: who is blocked is out at once, and stays out until unblocked`, async t => {
    const redis = kind === 'redis' ? await testRedis(t.after) : undefined
    const one = await gatewayOf(t, redis?.url)
    const other = redis === undefined ? one : await gatewayOf(t, redis.url)
    for (const [body, out, lift] of blocks) {
      const title = JSON.stringify(body)
      const cookies = await Promise.all(names.map(async name => await one.signIn(name)))
      for (const cookie of cookies) t.ok(await other.isSignedIn(cookie))
      t.match(await one.opsJson('users/block', body), { closed: out.length }, title)
      const signedIn = async ({ isSignedIn }: typeof one) =>
        JSON.stringify(await Promise.all(cookies.map(isSignedIn)))
      const expected = JSON.stringify(names.map(name => !out.includes(name as never)))
      t.equal(await signedIn(one), expected, title)
      await until('the other replica knows', async () => (await signedIn(other)) === expected)
      for (const name of names) {
        const { status, json } = await other.attempt(name)
        if (!out.includes(name as never)) t.equal(status, 200, `${title} ${name}`)
        else t.match([status, json.errorCode], [403, 'login.blocked-by-operator'], title)
      }
      t.match(await other.opsJson('users/blocked'), { blocked: { length: 1 } })
      t.match(await other.opsJson('users/unblock', lift), { unblocked: 1 }, title)
      t.same(await one.opsJson('users/blocked'), { blocked: [] })
      for (const name of names) t.equal((await one.attempt(name)).status, 200, title)
      await one.opsJson('sessions/close', { everyone: true })
    }
    await one.opsJson('users/block', { name: 'bob', forMs: 1000 })
    t.equal((await other.attempt('bob')).status, 403)
    await sleep(1100)
    t.equal((await other.attempt('bob')).status, 200, 'it ends by itself')
    t.same(await one.opsJson('users/blocked'), { blocked: [] })
    if (redis === undefined) return
    await one.opsJson('users/block', { name: 'bob' })
    await redis.kill()
    await redis.start()
    let code: unknown = ''
    await until('Redis is back', async () => {
      code = (await one.attempt('bob')).json.errorCode
      return code !== 'session.unavailable'
    })
    t.equal(code, 'login.blocked-by-operator', 'a Redis that forgot it is told again')
  })
}

t.test('U5: guesses learn nothing of a block, and it is no failure', async t => {
  const gateway = await gatewayOf(t)
  await gateway.opsJson('users/block', { name: 'alice' })
  const guess = await gateway.attempt('alice', { password: 'a guess' })
  t.match(guess, { status: 401, json: { errorCode: 'login.refused' } })
  const before = [given, signedOut.length] as const
  for (let count = 0; count < 4; count++) {
    const blocked = { status: 403, json: { errorCode: 'login.blocked-by-operator' } }
    for (const name of ['alice', 'shopper']) t.match(await gateway.attempt(name), blocked)
  }
  t.match(await gateway.metrics(), /sign_ins_total\{source="users-file",outcome="blocked"\} 4$/m)
  const line = gateway.log.find(({ outcome }) => outcome === 'blocked')
  t.match(line, { event: 'login.refused', user: 'alice', code: 'login.blocked-by-operator' })
  await until('nothing is left at the back-end', () => signedOut.length === before[1] + 4)
  t.ok(given >= before[0] + 4)
})

t.test(
  'U5: who gives way, or is signed out elsewhere or by an operator, is so there too',
  async t => {
    const gateway = await gatewayOf(t)
    const tokens: string[] = []
    const cookies: string[] = []
    for (let count = 0; count < 6; count++) {
      cookies.push(await gateway.signIn('shopper'))
      tokens.push(`t${given}`)
    }
    const areOut = async (count: number) =>
      await until(`${count} are signed out`, () =>
        tokens.every((token, index) => signedOut.includes(token) === index < count)
      )
    await areOut(1)
    const others = { cookie: cookies[5] ?? '', json: { others: true } }
    t.match((await gateway.call('/api/session/close', others)).json, { data: { closed: 4 } })
    await areOut(5)
    t.match(await gateway.opsJson('sessions/close', { user: 'X7', by: 'id' }), { closed: 1 })
    await areOut(6)
    for (const cookie of cookies) t.notOk(await gateway.isSignedIn(cookie))
  }
)
