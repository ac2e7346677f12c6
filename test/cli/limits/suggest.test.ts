import t from 'tap'
import { stopClock } from '../../support/clock.ts'
import { run } from '../../support/command.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { testUpstream } from '../../support/upstream.ts'

t.test(
  'a running gateway says what its callers needed of each limit, who was over, and the number to set',
  async t => {
    // All of it in one hour.
    stopClock(t.after)
    const upstream = await testUpstream(t.after)
    const folder = await configFolder({
      gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } },
      routes: {
        upstreams: { b: { url: upstream.url } },
        routes: { orders: { path: '/api/orders', upstream: 'b', access: 'session' } }
      },
      limits: {
        limits: {
          users: { by: 'user', max: 7, window: '1h', routes: ['orders'] },
          tried: { by: 'session', max: 5, window: '1h', routes: ['orders'], mode: 'shadow' },
          guesses: { by: 'account', max: 3, window: '1h', routes: ['login'], refusedOnly: true },
          nobody: { by: 'address', max: 9, window: '1h' }
        }
      }
    })
    const gateway = await testGateway(t.after, folder)
    const suggest = async (...words: string[]) =>
      await run(['limits', 'suggest', '-c', folder, ...words])
    const empty = await suggest()
    t.equal(empty.code, 0, empty.err)
    t.match(
      empty.out,
      /^Taken from \d+ (s|min) of use, from .* \(UTC\), not 24h: there is no record of the rest\.\n/
    )
    t.match(empty.out, /^users +enforce +max 7 +0 +0 +- +- +- +-$/m)
    const cookie = await gateway.signIn()
    for (let index = 0; index < 12; index++) await gateway.call('/api/orders', { cookie })
    for (let index = 0; index < 4; index++) {
      await gateway.call('/api/auth/admin/login', { json: { username: 'bob', password: 'wrong' } })
    }
    const { code, out } = await suggest('--since', '2h', '--json')
    t.equal(code, 3)
    const found = JSON.parse(out)
    t.match(found, {
      askedMs: 7_200_000,
      processes: 1,
      alone: false,
      limits: [
        {
          limit: 'users',
          key: 'max',
          inForce: 7,
          requests: 12,
          refused: 5,
          p50: 12,
          p99: 12,
          highest: 12,
          lowest: { from: 12, to: 12 },
          over: [{ whom: 'user 1 of users-file', needed: { from: 12, to: 12 }, refused: 5 }]
        },
        {
          limit: 'tried',
          mode: 'shadow',
          requests: 12,
          lowest: { from: 12, to: 12 },
          over: [
            { whom: /^user 1 of users-file, session [\w-]{12}$/, needed: { from: 12, to: 12 } }
          ]
        },
        {
          limit: 'guesses',
          requests: 5,
          highest: 4,
          over: [{ whom: 'account bob', needed: { from: 4, to: 4 } }]
        },
        { limit: 'nobody', requests: 0, over: [] }
      ]
    })
    t.notOk(
      out.includes(decodeURIComponent(cookie.split('=')[1] ?? '').slice(0, 20)),
      'nothing that opens a session'
    )
    const words = await suggest()
    t.match(words.out, /^users +enforce +max 7 +12 +5 +12 +12 +12 +12$/m)
    t.match(words.out, /^user 1 of users-file +users +12 +7 .* +5$/m)
    t.match(await suggest('--since', 'yesterday'), { code: 2, err: /--since is a duration/ })
    t.match(await (await gateway.ops('/ops/api/limits/suggest?sinceMs=x')).json(), {
      error: /sinceMs is a number of milliseconds/
    })
    t.match(
      await (
        await gateway.ops('/ops/api/limits/suggest', { headers: { origin: 'http://evil.example' } })
      ).json(),
      { code: 'origin.refused' }
    )
  }
)

t.test('without a record it says so', async t => {
  const folder = await configFolder({
    gateway: { ops: { listen: `127.0.0.1:${await freePort()}`, useRecord: '0s' } }
  })
  await testGateway(t.after, folder)
  t.match(await run(['limits', 'suggest', '-c', folder]), { code: 1, err: /ops\.useRecord is 0s/ })
})
