import t from 'tap'
import type { Mode } from '../support/faulty-proxy.ts'
import { redisCli } from '../support/redis-cli.ts'
import { until } from '../support/until.ts'
import { behindProxy, networkFault } from '../support/network-fault.ts'
import { profile } from '../support/trial.ts'

const logout = '/api/account/logout'
const patient = { commandTimeout: '20s' }

const faults: ReadonlyArray<readonly [name: string, mode: Mode, outcome: string]> = [
  ['connections are refused', 'refuse', '503, nobody is signed out'],
  ['answers are garbage', 'garbage', '503, nobody is signed out or in by it'],
  ['20 bytes a second', 'trickle', '503, nobody is signed out'],
  ['the connection comes and goes every 150 ms', 'flap', 'nobody is signed out']
]
for (const [name, mode, outcome] of faults) {
  t.test(`${name}: ${outcome}, and all is well once it is over`, async t => {
    await networkFault(t, { name, mode, seen: 503 })
  })
}

t.test(
  'answers are lost on connections that stay open: 503, and the gateway dials anew by itself',
  async t => {
    await networkFault(t, {
      name: 'answers are lost, connections stay open',
      mode: 'lose-answers',
      seen: 503,
      meanwhile: async ({ both }) => {
        for (const { log } of both) {
          await until('the watchdog has noticed', () =>
            log.some(({ reason }) => reason === 'it does not answer')
          )
        }
      }
    })
  }
)

t.test(
  'connections that are there lose their answers for good, new ones do not: the gateway heals without help',
  async t => {
    const { proxy, both } = await behindProxy(t)
    const cookie = await both[0].signIn()
    for (const gateway of both) {
      await until(
        'it is known there',
        async () => (await gateway.call(profile, { cookie })).status === 200
      )
    }
    await proxy.set('lose-answers', 'there')
    for (const gateway of both) {
      await until('the watchdog has noticed', () =>
        gateway.log.some(({ reason }) => reason === 'it does not answer')
      )
    }
    for (const gateway of both) {
      await until(
        'it works again',
        async () => (await gateway.call(profile, { cookie })).status === 200
      )
    }
  }
)

t.test('200 ms of latency: requests are slower, and nothing else', async t => {
  const trial = await networkFault(t, {
    name: '200 ms of latency',
    mode: { delayMs: 200 },
    seen: 200,
    redis: patient,
    meanwhile: async (_parts, trial) => {
      for (const [kind, status] of [
        ['sign-out', 200],
        ['profile', 200]
      ] as const) {
        await trial.saw(kind, status)
      }
    }
  })
  t.same(
    Object.values(trial.statuses('during')).filter(counts => '503' in counts),
    [],
    'slow is not away'
  )
})

t.test(
  'the channel for news alone goes dead without a sign: a sign-out is seen everywhere within 2 s',
  async t => {
    const {
      proxy,
      both: [a, b]
    } = await behindProxy(t, patient)
    const cookie = await a.signIn()
    for (const gateway of [a, b]) {
      for (let n = 0; n < 2; n++) t.equal((await gateway.call(profile, { cookie })).status, 200)
    }
    await proxy.set('swallow', 'news')
    t.equal((await a.call(logout, { cookie })).status, 200)
    const closedAt = performance.now()
    let acceptedAt = closedAt
    const statuses = new Set<number>()
    await until('the other replica has seen it', async () => {
      const askedAt = performance.now()
      const { status } = await b.call(profile, { cookie })
      statuses.add(status)
      if (status === 200) acceptedAt = askedAt
      return status === 401
    })
    // What is asked later than that is never answered from memory, on the busiest machine.
    t.ok(acceptedAt - closedAt <= 2000, `accepted for ${Math.round(acceptedAt - closedAt)} ms`)
    t.same(
      [...statuses].filter(status => status !== 200 && status !== 401),
      []
    )
    const another = await a.signIn()
    t.equal((await b.call(profile, { cookie: another })).status, 200, 'requests go on')
    t.equal((await b.call(logout, { cookie: another })).status, 200)
    t.equal(
      (await a.call(profile, { cookie: another })).status,
      401,
      'and are answered by Redis itself, at once'
    )
    t.comment(
      `measured ${JSON.stringify({ fault: 'the channel for news is dead without a sign', acceptedForMs: Math.round(acceptedAt - closedAt) })}`
    )
  }
)

t.test(
  'the channel for news alone is closed: a sign-out is seen everywhere, and the channel is back by itself',
  async t => {
    const {
      redis,
      both: [a, b]
    } = await behindProxy(t, patient)
    const cookie = await a.signIn()
    for (let n = 0; n < 2; n++) t.equal((await b.call(profile, { cookie })).status, 200)
    const channels = async () =>
      (await redisCli(redis.port, 'CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .split('\n')
        .filter(line => line.includes('console-gateway-news')).length
    await until('both channels are there', async () => (await channels()) === 2)
    t.ok(Number(await redisCli(redis.port, 'CLIENT', 'KILL', 'TYPE', 'pubsub')) >= 2)
    t.equal((await a.call(logout, { cookie })).status, 200)
    const closedAt = performance.now()
    await until('the other replica has seen it', async () => {
      const askedAt = performance.now()
      const { status } = await b.call(profile, { cookie })
      if (status === 200 && askedAt - closedAt > 2000) {
        t.fail('a closed session was accepted for more than 2 s')
      }
      return status === 401
    })
    await until('both channels are back', async () => (await channels()) === 2)
  }
)
