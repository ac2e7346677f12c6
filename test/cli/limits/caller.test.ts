/**
 * `limits show` and `limits reset` where replicas share Redis; the rest stands in
 * operators.transcript.yaml.
 */
import t, { type Test } from 'tap'
import { run } from '../../support/command.ts'
import { type Files, password, testGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const login = '/api/auth/admin/login'
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
