/** How many processes share the counters, and when one is surely alone. */
import { EventEmitter, once } from 'node:events'
import { mock } from 'node:test'
import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createReplicas } from '../../../src/limits/counting/replicas.ts'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { redisConfig } from '../../support/config.ts'
import { until } from '../../support/until.ts'
import { testRedis } from '../../support/redis.ts'

t.test('alone is who was the only one for ten turns, until another comes', async t => {
  const server = await testRedis(t.after)
  const dial = async () => {
    const redis = createRedisDialler(
      redisConfig({ url: server.url, connectTimeout: 30_000, commandTimeout: 30_000 }),
      '.'
    ).client({ onUp: () => {}, onDown: () => {} })
    t.after(() => redis.disconnect())
    const replicas = createReplicas(redis, 'cg:', 20)
    if (redis.status !== 'ready') await once(redis, 'ready')
    return Object.assign(replicas, { redis })
  }
  const first = await dial()
  t.equal(first.isAlone(), false, 'who has just come does not know')
  await until('it is sure', first.isAlone)
  t.equal(first.count(), 1)
  const second = await dial()
  await until('it knows of the other', () => first.count() === 2)
  t.equal(first.isAlone(), false)
  t.equal(second.isAlone(), false)
  await second.close()
  await until('it is sure again', first.isAlone)
  const third = await dial()
  await until('it knows of the third', () => first.count() === 2)
  third.redis.disconnect()
  await until('one that ended without a word is forgotten', () => first.count() === 1)
  await first.close()
})

/** Redis as a process uses it that counts the others; time passes by turns. */
function countedBy(t: Test) {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const removed: string[] = []
  const redis = Object.assign(new EventEmitter(), {
    status: 'ready',
    count: 1 as unknown,
    asked: 0,
    defineCommand: () => {},
    countReplicas: async () => {
      redis.asked++
      if (redis.count instanceof Error) throw redis.count
      return redis.count
    },
    zrem: async (key: string) => removed.push(key)
  })
  const replicas = createReplicas(redis as unknown as Redis, 'cg:')
  const turns = async (times: number) => {
    for (let turn = 0; turn < times; turn++) {
      mock.timers.tick(1000)
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  return { redis, replicas, turns, removed }
}

t.test('whoever lost sight of Redis is not sure to be alone for ten more turns', async t => {
  const { redis, replicas, turns } = countedBy(t)
  const isSure = async () => {
    await turns(10)
    t.equal(replicas.isAlone(), false)
    await turns(1)
    t.equal(replicas.isAlone(), true)
  }
  await isSure()
  redis.status = 'reconnecting'
  await turns(1)
  t.equal(replicas.isAlone(), false)
  redis.status = 'ready'
  await isSure()
  redis.count = new Error('away')
  await turns(1)
  t.equal(replicas.isAlone(), false)
  redis.count = 1
  await isSure()
  redis.count = 3
  await turns(1)
  t.same([replicas.isAlone(), replicas.count()], [false, 3])
  redis.status = 'reconnecting'
  await turns(20)
  t.equal(replicas.count(), 3, 'the last that is known')
  redis.status = 'ready'
  redis.count = 0
  await turns(5)
  t.equal(replicas.count(), 1, 'itself')
})

t.test('a Redis that comes back empty makes nobody take itself for one of fewer', async t => {
  const { redis, replicas, turns } = countedBy(t)
  redis.count = 4
  await turns(1)
  t.equal(replicas.count(), 4)
  // It ends again before the others have reported themselves, several times.
  for (let crash = 0; crash < 6; crash++) {
    redis.count = 1
    await turns(1)
    t.equal(replicas.count(), 4)
    redis.status = 'reconnecting'
    await turns(1)
    redis.status = 'ready'
  }
  redis.count = new Error('away')
  await turns(1)
  for (const count of [1, 2, 3, 1, 1]) {
    t.equal(replicas.count(), 4)
    redis.count = count
    await turns(1)
  }
  t.equal(replicas.count(), 3, 'the highest of five turns')
  redis.count = 6
  await turns(1)
  t.equal(replicas.count(), 6, 'more are known at once')
})

t.test(
  'a process reports itself as soon as Redis is ready, and takes itself off at its end',
  async t => {
    const { redis, replicas, turns, removed } = countedBy(t)
    redis.emit('ready')
    t.equal(redis.asked, 1)
    await replicas.close()
    t.same(removed, ['cg:replicas'])
    redis.emit('ready')
    await turns(3)
    t.equal(redis.asked, 1)
    t.equal(redis.listenerCount('ready'), 0)
  }
)

t.end()
