/** How many processes share the counters, and when one is surely alone. */
import { once } from 'node:events'
import t from 'tap'
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
    return replicas
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
  await first.close()
})
