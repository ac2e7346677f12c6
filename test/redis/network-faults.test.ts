import t, { type Test } from 'tap'
import type { Mode } from '../support/faulty-proxy.ts'
import { until } from '../support/until.ts'
import { type BehindProxy, behindProxy, networkFault } from '../support/network-fault.ts'
import { profile } from '../support/trial.ts'

const logout = '/api/account/logout'
const patient = { commandTimeout: '20s' }

const noticed = async ({ both }: BehindProxy) => {
  for (const { logged } of both) await logged(({ reason }) => reason === 'it does not answer')
}

const faults: ReadonlyArray<
  readonly [name: string, mode: Mode, outcome: string, meanwhile?: typeof noticed]
> = [
  ['connections are refused', 'refuse', '503, nobody is signed out'],
  ['answers are garbage', 'garbage', '503, nobody is signed out or in by it'],
  ['20 bytes a second', 'trickle', '503, nobody is signed out'],
  ['the connection comes and goes every 150 ms', 'flap', 'nobody is signed out'],
  ['answers are lost on connections that stay', 'lose-answers', '503, it dials anew', noticed]
]
for (const [name, mode, outcome, meanwhile] of faults) {
  t.test(`${name}: ${outcome}, and all is well once it is over`, async t => {
    await networkFault(t, { name, mode, seen: 503, ...(meanwhile && { meanwhile }) })
  })
}

t.test('connections lose their answers for good, new ones do not: it heals itself', async t => {
  const parts = await behindProxy(t)
  const cookie = await parts.both[0].signIn()
  const works = async () => {
    for (const gateway of parts.both) {
      const isIn = async () => (await gateway.status(profile, { cookie })) === 200
      await until('it works', isIn)
    }
  }
  await works()
  await parts.proxy.set('lose-answers', 'there')
  await noticed(parts)
  await works()
})

t.test('200 ms of latency: requests are slower, and nothing else', async t => {
  const trial = await networkFault(t, {
    name: '200 ms of latency',
    mode: { delayMs: 200 },
    seen: 200,
    redis: patient,
    meanwhile: async (_parts, trial) => {
      for (const kind of ['sign-out', 'profile']) await trial.saw(kind, 200)
    }
  })
  t.same(
    Object.values(trial.statuses('during')).filter(counts => '503' in counts),
    [],
    'slow is not away'
  )
})

/**
 * Signs out at one replica, and looks at the other one until it knows. What it is asked later than
 * two seconds is never answered from memory, on the busiest machine.
 */
async function signsOutEverywhere(t: Test, [a, b]: BehindProxy['both'], cookie: string) {
  t.equal(await a.status(logout, { cookie }), 200)
  const closedAt = performance.now()
  let acceptedMs = 0
  const statuses = new Set<number>()
  await until('the other replica has seen it', async () => {
    const askedMs = performance.now() - closedAt
    const { status } = await b.call(profile, { cookie })
    statuses.add(status)
    if (status === 200) acceptedMs = askedMs
    return status === 401
  })
  t.ok(acceptedMs <= 2000, `accepted for ${Math.round(acceptedMs)} ms`)
  for (const status of statuses) t.ok([200, 401].includes(status), `${status}`)
}

t.test('the channel for news alone is dead: a sign-out is everywhere within 2 s', async t => {
  const { proxy, both } = await behindProxy(t, patient)
  const [a, b] = both
  const cookie = await a.signIn()
  for (const gateway of [a, b, a, b]) {
    t.equal(await gateway.status(profile, { cookie }), 200)
  }
  await proxy.set('swallow', 'news')
  await signsOutEverywhere(t, both, cookie)
  const another = await a.signIn()
  t.equal(await b.status(profile, { cookie: another }), 200, 'requests go on')
  t.equal(await b.status(logout, { cookie: another }), 200)
  const { status } = await a.call(profile, { cookie: another })
  t.equal(status, 401, 'and are answered by Redis itself, at once')
})

t.test('the channel for news alone is closed: a sign-out is seen everywhere', async t => {
  const { redis, both } = await behindProxy(t, patient)
  const [a, b] = both
  const cookie = await a.signIn()
  for (const gateway of [b, b]) {
    t.equal(await gateway.status(profile, { cookie }), 200)
  }
  const clients = async (...words: string[]) => await redis.cli('CLIENT', ...words)
  const channels = async () =>
    (await clients('LIST', 'TYPE', 'pubsub')).split('console-gateway-news').length - 1
  await until('both channels are there', async () => (await channels()) === 2)
  t.ok(Number(await clients('KILL', 'TYPE', 'pubsub')) >= 2)
  await signsOutEverywhere(t, both, cookie)
  await until('both channels are back', async () => (await channels()) === 2)
})
