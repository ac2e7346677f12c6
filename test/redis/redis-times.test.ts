import { Redis } from 'ioredis'
import t from 'tap'
import { Metrics } from '../../src/observability/metrics.ts'
import { measureRedis } from '../../src/services/redis-times.ts'
import { testRedis } from '../support/redis.ts'

t.test('commands are timed by use and outcome, those of pipelines as well', async t => {
  const { url } = await testRedis(t.after)
  const redis = new Redis(url, { lazyConnect: true })
  t.after(() => redis.disconnect())
  await redis.connect()
  const metrics = new Metrics()
  measureRedis(metrics)(redis, 'sessions')
  await redis.set('a', '1')
  await redis.pipeline().get('a').get('b').exec()
  await t.rejects(redis.lpush('a', '1'), /WRONGTYPE/)
  const { body } = await metrics.text()
  const count = 'console_gateway_redis_command_seconds_count'
  t.match(body, `${count}{use="sessions",outcome="ok"} 3\n`)
  t.match(body, `${count}{use="sessions",outcome="failed"} 1\n`)
})
