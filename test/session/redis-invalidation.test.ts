/** Two primaries, as in a Cluster: what each announces, and what it means that one is gone. */
import t, { type Test } from 'tap'
import { Redis } from 'ioredis'
import { followRedis } from '../../src/session/redis-invalidation.ts'
import { adopt } from '../../src/observability/emitters.ts'
import { createRedisDialler } from '../../src/services/redis.ts'
import { redisConfig } from '../support/config.ts'
import { testRedis, type TestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const names = { tracked: 'test:', session: 'test:session:', epoch: 'test:epoch' }

async function opened(t: Test) {
  const primaries = [await testRedis(t.after), await testRedis(t.after)] as const
  const events: string[] = []
  let changeTopology = () => {}
  let dialled = 0
  const close = followRedis({
    dial: () => {
      dialled++
      return primaries.flatMap(({ url }) => {
        const config = redisConfig({ url, connectTimeout: 30_000, commandTimeout: 1000 })
        return createRedisDialler(config, '.').trackingConnections(undefined as never)
      })
    },
    onTopology: changed => {
      changeTopology = changed
    },
    follower: {
      onUp: () => events.push('up'),
      onDown: () => events.push('down'),
      onChanged: key => events.push(`changed ${key}`),
      onEpoch: () => events.push('epoch'),
      onHeartbeat: agoMs => void (agoMs < 60_000 && events.push('heartbeat'))
    },
    names,
    maxStalenessMs: 400
  })
  t.after(close)
  const count = (event: string) => events.filter(each => each === event).length
  return {
    primaries,
    events,
    count,
    come: async (event: string, times = 1) =>
      await until(`${event} ${times}`, () => count(event) >= times),
    changeTopology: () => changeTopology(),
    close,
    dialled: () => dialled
  }
}

async function write({ port }: TestRedis, key: string): Promise<void> {
  const client = adopt(new Redis(port, '127.0.0.1'))
  await client.set(key, 'x')
  client.disconnect()
}

t.test('the changes of each primary are announced once all are tracked', async t => {
  const { primaries, events, count, come } = await opened(t)
  await come('heartbeat')
  t.equal(count('up'), 1, 'once for both')
  t.equal(events[0], 'up')
  for (const [index, primary] of primaries.entries()) {
    await write(primary, `${names.session}${index}`)
    await come(`changed ${index}`)
    await write(primary, `${names.epoch}:${index}`)
    await come('epoch', index + 1)
    await write(primary, `other:${index}`)
  }
  t.equal(count('down'), 0)
})

t.test('while one primary is gone nothing is vouched for', async t => {
  const { primaries, events, count, come } = await opened(t)
  await come('heartbeat')
  await primaries[1].kill()
  await come('down')
  const heartbeats = count('heartbeat')
  await write(primaries[0], `${names.session}a`)
  await come('changed a')
  t.equal(count('heartbeat'), heartbeats)
  t.equal(count('up'), 1)
  await primaries[1].start()
  await come('up', 2)
  await come('heartbeat', heartbeats + 1)
  t.ok(events.lastIndexOf('up') > events.indexOf('down'))
})

t.test('a primary that hangs vouches for nothing, until it is found to be gone', async t => {
  const { primaries, count, come } = await opened(t)
  await come('heartbeat')
  primaries[1].signal('SIGSTOP')
  const heartbeats = count('heartbeat')
  await come('down')
  t.ok(count('heartbeat') <= heartbeats + 1, 'but one that was answered before')
  primaries[1].signal('SIGCONT')
  await come('up', 2)
})

t.test('a flush may have taken everything', async t => {
  const { primaries, come, count } = await opened(t)
  await come('heartbeat')
  const client = adopt(new Redis(primaries[1].port, '127.0.0.1'))
  t.after(() => client.disconnect())
  await client.flushall()
  await come('up', 2)
  t.equal(count('down'), 0)
})

t.test('other primaries are dialled when they are known, and none after the end', async t => {
  const { come, count, changeTopology, dialled, close } = await opened(t)
  await come('heartbeat')
  changeTopology()
  t.equal(dialled(), 2)
  t.equal(count('down'), 1, 'until they are tracked, nothing is vouched for')
  await come('up', 2)
  close()
  changeTopology()
  t.equal(dialled(), 2)
})
