import t from 'tap'
import { compilePlan } from '../../../src/limits/counting/plan.ts'
import { createRedisUsage } from '../../../src/limits/usage/redis-usage.ts'
import { hourMs } from '../../../src/limits/usage/hours.ts'
import { createUsageRecord } from '../../../src/limits/usage/record.ts'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { redisConfig } from '../../support/config.ts'
import { testRedis } from '../../support/redis.ts'

t.test(
  'each process leaves its record in Redis and reads the others’; it has an end; what is damaged is passed over; without Redis it stands alone',
  async t => {
    const server = await testRedis(t.after)
    let up = () => {}
    const isUp = new Promise<void>(resolve => {
      up = resolve
    })
    const redis = createRedisDialler(redisConfig({ url: server.url }), '.').client({
      onUp: () => up(),
      onDown: () => {}
    })
    t.teardown(() => redis.disconnect())
    await isUp
    let time = Date.UTC(2026, 0, 1, 0, 30)
    const now = () => time
    const keepMs = 3 * hourMs
    const plan = compilePlan({
      limits: {
        l: {
          by: ['address'],
          max: 9,
          window: 60_000,
          kind: 'fixed',
          mode: 'shadow',
          routes: [],
          methods: [],
          roles: [],
          refusedOnly: false
        }
      },
      replicas: 'counted'
    })
    const processes = [0, 1].map(() => {
      const record = createUsageRecord({ keepMs, now })
      const { rules, keysOf } = plan('r', 'GET', undefined)
      return {
        record,
        uses: createRedisUsage(redis, 'cg:', record, keepMs),
        ask: (address: string) => record.count(rules, keysOf(address, undefined))
      }
    })
    const [one, two] = processes as [(typeof processes)[0] & {}, (typeof processes)[0] & {}]
    one.ask('192.0.2.1')
    two.ask('192.0.2.2')
    await two.uses.leave()
    time += hourMs
    two.ask('192.0.2.2')
    await two.uses.leave()
    const [first, second] = [Math.floor(time / hourMs) - 1, Math.floor(time / hourMs)]
    t.same((await redis.keys('*')).toSorted(), [`cg:use:${first}`, `cg:use:${second}`])
    t.ok((await redis.pttl(`cg:use:${first}`)) > keepMs)
    await redis.hset(
      `cg:use:${second}`,
      'damaged',
      '{"hour":1',
      'another',
      '{"hour":1,"limits":[null]}'
    )
    const seen = async (since: number) => {
      const { hours, alone } = await one.uses.read(since)
      return {
        alone,
        hours: hours
          .map(({ use }) => [
            use.hour - first,
            use.limits.flatMap(({ top }) => top.map(([key]) => key)).join()
          ])
          .toSorted()
      }
    }
    t.same(await seen(time - 2 * hourMs), {
      alone: false,
      hours: [
        [0, '{a:192.0.2.1}l.fixed'],
        [0, '{a:192.0.2.2}l.fixed'],
        [1, ''],
        [1, '{a:192.0.2.2}l.fixed']
      ]
    })
    t.same(await seen(time - 1), {
      alone: false,
      hours: [
        [1, ''],
        [1, '{a:192.0.2.2}l.fixed']
      ]
    })
    await one.uses.close()
    t.equal(
      Object.keys(await redis.hgetall(`cg:use:${first}`)).length,
      2,
      'what a process saw is left when it ends'
    )
    redis.disconnect()
    t.same(await seen(time - 1), { alone: true, hours: [[1, '']] })
    for (const { record, uses } of processes) {
      await uses.close()
      record.close()
    }
  }
)
