import { once } from 'node:events'
import { Redis } from 'ioredis'
import t from 'tap'
import { watch } from '../../src/services/redis-watch.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

t.test('a connection that is cut is an outage; one that its owner closes is none', async t => {
  const { url } = await testRedis(t.after)
  const redis = new Redis(url, { lazyConnect: true })
  t.after(() => redis.disconnect())
  let ups = 0
  const outages: string[] = []
  watch(redis, reason => void (reason === undefined ? ups++ : outages.push(reason)))
  await redis.connect()
  const other = new Redis(url)
  t.after(() => other.disconnect())
  await other.call('CLIENT', 'KILL', 'TYPE', 'normal')
  await until('it is up again', () => ups === 2)
  t.same(outages, ['the connection closed'])
  const ended = once(redis, 'end')
  redis.disconnect()
  await ended
  t.same(outages, ['the connection closed'])
})
