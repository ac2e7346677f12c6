import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { createRedisDialler } from '../../src/redis.ts'
import { followRedis } from '../../src/session/redis-feed.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { StoreUnavailable } from '../../src/session/store.ts'
import { sessionStoreContract } from '../contract/session-store.ts'
import { redisConfig } from '../support/config.ts'
import { testRedis } from '../support/redis.ts'

const redis = await testRedis(undo => t.teardown(undo))
const up: Array<() => void> = []
const dialler = createRedisDialler(redisConfig({ url: redis.url }), '.')
const client = dialler.client({ onUp: () => up.splice(0).forEach(tell => tell()), onDown: () => {} })
t.teardown(() => client.disconnect())
const ready = () => new Promise<void>(resolve => {
  if (client.status === 'ready') resolve()
  else up.push(resolve)
})
await ready()
const follow: Parameters<typeof createRedisStore>[0]['follow'] = (follower, names) => {
  const end = followRedis({ dial: () => dialler.newsLines(client), onTopology: changed => dialler.onTopology(client, changed), follower, names, boundMs: 2000 })
  t.teardown(end)
}
const store = createRedisStore({ redis: client, prefix: 'test:', follow })

sessionStoreContract(t, store, async ms => { await wait(ms) }, Date.now)

t.test('a key of another type, or without a time to live, is no session', async t => {
  await client.lpush('test:session:list', 'x')
  t.equal(await store.read('list'), undefined)
  await client.set('test:session:eternal', '{}')
  t.equal(await store.read('eternal'), undefined)
})

t.test('a Redis that hangs makes every call fail within the command time-out, and none succeed late', async t => {
  await store.create('frozen', '{}', 60_000)
  redis.signal('SIGSTOP')
  const began = performance.now()
  await t.rejects(store.read('frozen'), { code: 'session.unavailable' })
  t.ok(performance.now() - began < 2000, 'bounded')
  t.equal(await store.ping(), false)
  redis.signal('SIGCONT')
  await wait(0)
  await ready()
  t.equal((await store.read('frozen'))?.record, '{}', 'the session outlived the pause')
})

t.test('a Redis that is gone makes every call fail at once; a new one is found without help', async t => {
  await redis.kill()
  for (const attempt of [() => store.read('x'), () => store.create('x', '{}', 1000), () => store.touch('x', 1000), () => store.end('x', '!revoked', 1000)]) {
    const error: unknown = await attempt().then(() => undefined, (reason: unknown) => reason)
    t.ok(error instanceof StoreUnavailable, String(error))
  }
  await redis.start()
  await ready()
  await store.create('again', '{}', 1000)
  t.equal((await store.read('again'))?.record, '{}')
})
