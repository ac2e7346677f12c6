/** `limits show` and `limits reset`, against gateways that run. */
import t, { type Test } from 'tap'
import { run } from '../../support/command.ts'
import { type Files, password, testGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const login = '/api/auth/admin/login'
const profile = '/api/account/profile'
const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

async function served(t: Test, files: Files) {
  const gateway = await testGateway(t.after, files, environment)
  const command = async (what: string, caller: string): Promise<{ code: number; answer: any }> => {
    const words = ['limits', what, caller, '-c', gateway.folder, '--json']
    const { code, out, err } = await run(words, { env: environment })
    return { code: code ?? 0, answer: code === 1 ? err : JSON.parse(out) }
  }
  return { gateway, command }
}

async function times(count: number, call: () => Promise<{ status: number }>): Promise<number[]> {
  const found: number[] = []
  for (let index = 0; index < count; index++) found.push((await call()).status)
  return found
}

t.test('an address that is over a limit is shown, and counts anew after a reset', async t => {
  const limits = {
    anonymous: { by: 'address', max: 3, window: '1h' },
    tries: { by: 'address', max: 2, window: '1h', routes: ['login'] }
  }
  const { gateway, command } = await served(t, { limits: { limits } })
  t.same((await command('show', '127.0.0.1')).answer, { limits: [] })
  t.same(await times(4, () => gateway.call(profile)), [401, 401, 401, 429])
  const wrong = () => gateway.call(login, { json: { username: 'alice', password: 'wrong' } })
  t.same(await times(3, wrong), [401, 401, 429])
  const { code, answer } = await command('show', '127.0.0.1')
  t.equal(code, 3)
  t.match(answer.limits, [
    { limit: 'anonymous', mode: 'enforce', used: 3, max: 3, exceeded: true },
    { limit: 'tries', of: '', used: 2, max: 2, exceeded: true }
  ])
  t.ok(answer.limits[0].retryMs > 0)
  t.same((await command('show', '127.0.0.2')).answer, { limits: [] }, 'another address')
  t.same((await command('reset', '127.0.0.1')).answer, { reset: 2 })
  t.same(await times(4, () => gateway.call(profile)), [401, 401, 401, 429])
  t.same(await times(3, wrong), [401, 401, 429])
  t.match(
    gateway.log.find(({ event }) => event === 'limits.reset'),
    { by: 'operator', caller: '127.0.0.1' }
  )
})

t.test(
  'a user is shown by id and by name, with each session and address apart, and nobody else is reset',
  async t => {
    const limits = {
      user: { by: 'user', max: 2, window: '1h', routes: ['profile'] },
      each: { by: ['session', 'address'], max: 9, window: '1h' }
    }
    const { gateway, command } = await served(t, { limits: { limits } })
    const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
    for (const cookie of [alice, bob]) {
      t.same(await times(3, () => gateway.call(profile, { cookie })), [200, 200, 429])
    }
    for (const caller of ['1', 'alice']) {
      const { answer } = await command('show', caller)
      t.match(
        answer.limits.find(({ limit }: { limit: string }) => limit === 'user'),
        { used: 2, exceeded: true },
        caller
      )
      t.match(
        answer.limits.find(({ limit }: { limit: string }) => limit === 'each'),
        { of: /^[\w-]+ 127\.0\.0\.1$/, used: 2 }
      )
    }
    await command('reset', 'alice')
    t.equal((await gateway.call(profile, { cookie: alice })).status, 200)
    t.equal((await gateway.call(profile, { cookie: bob })).status, 429)
  }
)

t.test(
  'a reset at one replica holds at the others within a second or two, whatever they knew',
  async t => {
    const redis = await testRedis(t.after)
    const backend = await testUpstream(t.after)
    const files = {
      gateway: {
        redis: { url: redis.url, commandTimeout: '30s' },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: { open: { path: '/api/open', access: 'public', upstream: 'b' } }
      },
      limits: { limits: { anonymous: { by: 'address', max: 5, window: '1h' } } }
    }
    const [{ gateway: one, command }, { gateway: other }] = [
      await served(t, files),
      await served(t, files)
    ]
    for (const gateway of [one, other]) {
      await until('ready', async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 200)
    }
    await until('both know that the address is over its limit', async () => {
      const [a, b] = [await one.call('/api/open'), await other.call('/api/open')]
      return a.status === 429 && b.status === 429
    })
    t.match((await command('show', '127.0.0.1')).answer, {
      limits: [{ limit: 'anonymous', exceeded: true }]
    })
    await command('reset', '127.0.0.1')
    t.equal((await one.call('/api/open')).status, 200, 'at once where it was said')
    await until(
      'the other replica has heard of it',
      async () => (await other.call('/api/open')).status === 200,
      10_000
    )
  }
)

t.test('what Redis cannot be asked for is said', async t => {
  const redis = await testRedis(t.after)
  const files = {
    gateway: {
      redis: { url: redis.url, commandTimeout: '300ms' },
      session: { secrets: ['${SESSION_SECRET}'] }
    }
  }
  const { gateway, command } = await served(t, files)
  await until('ready', async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 200)
  await gateway.call(login, { json: { username: 'alice', password } })
  await redis.kill()
  const { code, answer } = await command('show', '127.0.0.1')
  t.equal(code, 1)
  t.match(answer, /Redis, which holds the counts, does not answer/)
})
