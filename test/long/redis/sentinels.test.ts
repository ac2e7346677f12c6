import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { redisConfig } from '../../support/config.ts'
import { standstill } from '../../support/machine.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { testSentinel, type TestSentinel } from '../../support/sentinel.ts'
import { until } from '../../support/until.ts'

const followedWithinMs = 2000

/** When a Sentinel announces another primary, by this process' clock. */
async function whenSwitched(
  t: Test,
  sentinel: TestSentinel
): Promise<{ readonly heard: Promise<number> }> {
  const ports = sentinel.sentinels.map(address => Number(address.split(':')[1]))
  const listeners = ports.map(port => new Redis({ port, enableReadyCheck: false }))
  t.after(() => {
    for (const each of listeners) each.disconnect()
  })
  const heard = new Promise<number>(resolve => {
    for (const each of listeners) each.on('message', () => resolve(performance.now()))
  })
  await Promise.all(listeners.map(async each => await each.subscribe('+switch-master')))
  return { heard }
}

/** A client led by Sentinels, and the port of the server that answers it. */
function followed(t: Test, sentinel: TestSentinel, sentinels = sentinel.sentinels) {
  const config = redisConfig({
    sentinels,
    primary: sentinel.name,
    connectTimeout: 1000,
    commandTimeout: 400
  })
  const dialler = createRedisDialler(config, '.')
  const client = dialler.client({ onUp: () => {}, onDown: () => {} }) as Redis
  t.after(() => {
    client.disconnect()
    dialler.close()
  })
  const port = async () => Number(((await client.config('GET', 'port')) as string[])[1])
  return { client, port }
}

t.test(
  'a planned failover is followed within 2 s of +switch-master, while the old primary still calls itself one',
  async t => {
    const sentinel = await testSentinel(t.after)
    const [old, heir] = sentinel.servers
    const { port } = followed(t, sentinel)
    await until('the primary answers', async () => (await port()) === old.port)
    const { heard } = await whenSwitched(t, sentinel)
    await redisCli(
      Number(sentinel.sentinels[0]?.split(':')[1]),
      'SENTINEL',
      'FAILOVER',
      sentinel.name
    )
    const at = await heard
    const stoodStillMs = standstill()
    await until('the new primary answers', async () => (await port()) === heir.port)
    const ms = Math.round(performance.now() - at)
    t.ok(ms < followedWithinMs + stoodStillMs(), `followed after ${ms} ms`)
    t.match(await redisCli(old.port, 'ROLE'), /^master/, 'the old one was not told yet')
  }
)

t.test('a primary that freezes is left within 2 s of +switch-master', async t => {
  const sentinel = await testSentinel(t.after)
  const [old, heir] = sentinel.servers
  const { port } = followed(t, sentinel)
  await until('the primary answers', async () => (await port()) === old.port)
  const { heard } = await whenSwitched(t, sentinel)
  old.signal('SIGSTOP')
  await sentinel.downAfter(500)
  const at = await heard
  const stoodStillMs = standstill()
  await until('the new primary answers', async () => (await port()) === heir.port)
  const ms = Math.round(performance.now() - at)
  t.ok(ms < followedWithinMs + stoodStillMs(), `followed after ${ms} ms`)
  old.signal('SIGCONT')
})

t.test(
  'a gateway that knows one Sentinel of three finds the others, and follows them when the one is gone',
  async t => {
    const sentinel = await testSentinel(t.after)
    const [old, heir] = sentinel.servers
    const { port } = followed(t, sentinel, sentinel.sentinels.slice(0, 1))
    await until('the primary answers', async () => (await port()) === old.port)
    await redisCli(Number(sentinel.sentinels[0]?.split(':')[1]), 'SHUTDOWN', 'NOSAVE').catch(
      () => {}
    )
    await redisCli(
      Number(sentinel.sentinels[1]?.split(':')[1]),
      'SENTINEL',
      'FAILOVER',
      sentinel.name
    )
    await until('the new primary answers', async () => (await port()) === heir.port)
    t.pass('followed')
  }
)
