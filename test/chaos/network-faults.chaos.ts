import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { faultyProxy, type Mode } from '../support/faulty-proxy.ts'
import { redisCli, until } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replicas, startTrial } from '../support/trial.ts'

async function behindProxy (t: Parameters<typeof replicas>[0]) {
  const redis = await testRedis(t.after)
  const proxy = await faultyProxy(t.after, redis.port)
  return { redis, proxy, both: await replicas(t, { url: `redis://127.0.0.1:${proxy.port}` }) }
}

const modes: ReadonlyArray<{ name: string, mode: Mode, seen: number }> = [
  { name: 'connections are refused', mode: 'refuse', seen: 503 },
  { name: 'answers are lost, connections stay open', mode: 'lose-answers', seen: 503 },
  { name: 'nothing goes through, connections stay open', mode: 'swallow', seen: 503 },
  { name: 'answers are garbage', mode: 'garbage', seen: 503 },
  { name: 'answers are cut in the middle', mode: 'cut', seen: 503 },
  { name: '20 bytes a second', mode: 'trickle', seen: 503 },
  { name: 'the connection comes and goes every 150 ms', mode: 'flap', seen: 503 },
  { name: '200 ms of latency', mode: { delayMs: 200 }, seen: 200 },
  { name: '1.5 s of latency', mode: { delayMs: 1500 }, seen: 503 }
]

for (const { name, mode, seen } of modes) {
  t.test(`${name}: 200 or 503 in bounded time, nobody is signed out, and all is well once it is over`, async t => {
    const { proxy, both } = await behindProxy(t)
    const trial = await startTrial(t, both, { name })
    await trial.during(async () => {
      await proxy.set(mode)
      await trial.saw('sign-in', seen)
      await wait(1200)
    })
    if (seen === 200) t.same(Object.values(trial.statuses('during')).flatMap(counts => Object.keys(counts)).filter(status => status === '503'), [], 'slow is not away')
    await trial.over(async () => await proxy.set('pass'))
  })
}

for (const mode of ['lose-answers', 'swallow'] as const) {
  t.test(`connections that are there go dead (${mode}): the gateway notices and dials anew, without help`, async t => {
    const { proxy, both } = await behindProxy(t)
    const trial = await startTrial(t, both, { name: `connections that are there go dead (${mode})` })
    await trial.during(async () => await proxy.set(mode, 'there'))
    await trial.over()
  })
}

t.test('the channel for news alone goes dead without a sign: a sign-out is seen everywhere within session.staleness', async t => {
  const { proxy, both: [a, b] } = await behindProxy(t)
  const cookie = await a.signIn()
  for (const gateway of [a, b]) for (let n = 0; n < 2; n++) t.equal((await gateway.call(profile, { cookie })).status, 200)
  await proxy.set('swallow', 'news')
  t.equal((await a.call('/api/account/logout', { cookie })).status, 200)
  const closedAt = performance.now()
  const statuses = new Set<number>()
  await until('the other replica has seen it', async () => {
    const { status } = await b.call(profile, { cookie })
    statuses.add(status)
    return status === 401
  })
  const ms = performance.now() - closedAt
  t.ok(ms <= 2000, `seen after ${Math.round(ms)} ms`)
  t.same([...statuses].filter(status => status !== 200 && status !== 401), [])
  const another = await a.signIn()
  t.equal((await b.call(profile, { cookie: another })).status, 200, 'requests go on')
  t.equal((await b.call('/api/account/logout', { cookie: another })).status, 200)
  t.equal((await a.call(profile, { cookie: another })).status, 401, 'and are answered by Redis itself, at once')
  t.comment(`measured ${JSON.stringify({ fault: 'the channel for news is dead without a sign', normalAfterMs: Math.round(ms) })}`)
})

t.test('the channel for news alone is closed: a sign-out is seen everywhere, and the channel is back by itself', async t => {
  const { redis, both: [a, b] } = await behindProxy(t)
  const cookie = await a.signIn()
  for (let n = 0; n < 2; n++) t.equal((await b.call(profile, { cookie })).status, 200)
  t.ok(Number(await redisCli(redis.port, 'CLIENT', 'KILL', 'TYPE', 'pubsub')) >= 2)
  t.equal((await a.call('/api/account/logout', { cookie })).status, 200)
  const closedAt = performance.now()
  await until('the other replica has seen it', async () => (await b.call(profile, { cookie })).status === 401)
  const ms = performance.now() - closedAt
  t.ok(ms <= 2000, `seen after ${Math.round(ms)} ms`)
  await until('both channels are back', async () => (await redisCli(redis.port, 'CLIENT', 'LIST', 'TYPE', 'pubsub')).split('\n').filter(line => line.includes('console-gateway-news')).length === 2)
  t.comment(`measured ${JSON.stringify({ fault: 'the channel for news is closed', normalAfterMs: Math.round(ms) })}`)
})

t.test('the address leads to another server, the old one is a replica now: the gateway follows', async t => {
  const { redis, proxy, both } = await behindProxy(t)
  const heir = await testRedis(t.after, ['--repl-diskless-sync-delay', '0', '--replicaof', `127.0.0.1 ${redis.port}`])
  const inStep = async (port: number) => { await until('in step', async () => (await redisCli(port, 'INFO', 'replication')).includes('master_link_status:up')) }
  await inStep(heir.port)
  const trial = await startTrial(t, both, { name: 'the address leads to another server', losesLatest: true })
  await trial.during(async () => {
    proxy.aim(heir.port)
    await redisCli(heir.port, 'REPLICAOF', 'NO', 'ONE')
    await redisCli(redis.port, 'REPLICAOF', '127.0.0.1', String(heir.port))
  })
  await trial.over()
})
