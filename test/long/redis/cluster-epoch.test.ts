import type { Cluster } from 'ioredis'
import t, { type Test } from 'tap'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { followRedis } from '../../../src/session/redis-invalidation.ts'
import { defineCommands } from '../../../src/session/redis-scripts.ts'
import { createRedisStore } from '../../../src/session/redis-store.ts'
import { createSeal } from '../../../src/session/seal.ts'
import { createSessions } from '../../../src/session/session.ts'
import { testCluster, type TestCluster } from '../../support/cluster.ts'
import { redisConfig } from '../../support/config.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { opening } from '../../support/session-steps.ts'
import { until } from '../../support/until.ts'

const hour = 3_600_000
const plainKey = 'cg:session-epoch'
const seal = createSeal(['a secret of at least thirty-two characters'])

/** A process with its sessions in the Cluster. */
async function processOver(t: Test, cluster: TestCluster) {
  const config = redisConfig({
    cluster: cluster.nodes,
    prefix: 'cg:',
    connectTimeout: 5000,
    commandTimeout: 2000
  })
  const dialler = createRedisDialler(config, '.')
  const client = dialler.client({ onUp: () => {}, onDown: () => {} }) as Cluster
  await until('the Cluster answers', async () => (await client.ping()) === 'PONG')
  const replicated = dialler.replicatedWrites(client, {
    barrierKey: 'cg:barrier',
    prepare: defineCommands,
    onRefused: () => t.fail('WAIT is refused')
  })
  const keysOnEach = dialler.keysOnEach(client)
  const following = Promise.withResolvers<void>()
  let endNews = () => {}
  const store = createRedisStore({
    redis: client,
    prefix: 'cg:',
    replicated,
    keysOnEach,
    onPrimary: changed => dialler.onTopology(client, changed),
    follow: (follower, names) => {
      endNews = followRedis({
        dial: () => dialler.trackingConnections(client),
        onTopology: changed => dialler.onTopology(client, changed),
        follower: {
          ...follower,
          onUp: () => {
            follower.onUp()
            following.resolve()
          }
        },
        names,
        maxStalenessMs: 20_000
      })
    }
  })
  const forgotten: object[] = []
  const sessions = createSessions({
    store,
    seal,
    lifeTimes: { idle: hour, absolute: hour, remembered: {} },
    perUser: { max: 1000, over: 'refuse' },
    maxStalenessMs: 20_000,
    onEpochForgotten: each => {
      forgotten.push(each)
    }
  })
  t.after(() => {
    endNews()
    replicated.close()
    client.disconnect()
  })
  await following.promise
  return { sessions, store, forgotten, epochKeys: () => keysOnEach(plainKey) }
}

/** Opens sessions at both processes by turns. */
async function openAll(
  both: ReadonlyArray<Awaited<ReturnType<typeof processOver>>>,
  names: readonly string[]
) {
  for (const [n, name] of names.entries()) {
    const { sessions } = both[n % 2] ?? both[0]!
    await until(
      'the session is open',
      async () => await sessions.open(name, opening('u')).then(() => true)
    )
  }
}

/** How many are alive, as each process says. */
async function alive(
  both: ReadonlyArray<Awaited<ReturnType<typeof processOver>>>,
  names: readonly string[]
) {
  return await Promise.all(
    both.map(async ({ sessions }) => {
      const resolved = await Promise.all(names.map(async name => await sessions.get(name)))
      return resolved.filter(each => 'live' in each).length
    })
  )
}

const named = (prefix: string) => Array.from({ length: 60 }, (_, n) => `${prefix}-${n}`)

t.test(
  'close-everyone in a Cluster is known to each primary, and outlives the node that forgets',
  async t => {
    const cluster = await testCluster(t.after)
    const both = [await processOver(t, cluster), await processOver(t, cluster)]
    const [here] = both
    if (here === undefined) throw new Error('there is no process')
    const keys = here.epochKeys()
    t.equal(keys.length, 3, 'a key for each primary')
    const homes = await Promise.all(keys.map(async key => (await cluster.primaryOf(key)).port))
    t.equal(new Set(homes).size, 3, 'each on another')

    await openAll(both, named('first'))
    await here.sessions.closeAll()
    await openAll(both, named('second'))
    t.same(
      await alive(both, named('second')),
      [60, 60],
      'opened right after close-everyone: none is dead at birth'
    )
    t.same(await alive(both, named('first')), [0, 0])
    for (const key of keys) {
      const { port } = await cluster.primaryOf(key)
      t.equal(await redisCli(port, 'GET', key), '1', key)
    }

    const home = await cluster.primaryOf(plainKey)
    await redisCli(home.port, 'DEL', plainKey)
    t.same(await alive(both, named('first')), [0, 0], 'the one key is gone: nobody is back')
    await until(
      'the node that forgot is told again',
      async () => (await redisCli(home.port, 'GET', plainKey)) === '1'
    )
    await here.sessions.closeAll()
    t.same(await alive(both, named('second')), [0, 0], 'the next close-everyone leaves nobody')
    t.same(
      both.flatMap(({ forgotten }) => forgotten),
      [],
      'no alarm, since the other primaries knew'
    )

    await openAll(both, named('third'))
    for (const key of keys) await redisCli((await cluster.primaryOf(key)).port, 'DEL', key)
    t.same(await alive(both, named('second')), [0, 0], 'all keys are gone: nobody is back')
    t.same(await alive(both, named('third')), [60, 60])
    t.ok(
      both.some(({ forgotten }) => forgotten.length > 0),
      'the alarm is given'
    )
    await until('each primary is told again', async () => {
      const values = await Promise.all(
        keys.map(async key => await redisCli((await cluster.primaryOf(key)).port, 'GET', key))
      )
      return values.every(value => value === '2')
    })
  }
)

t.test(
  'a primary that cannot be asked: sessions that are not remembered are 503, those that are go on',
  async t => {
    const cluster = await testCluster(t.after)
    const both = [await processOver(t, cluster), await processOver(t, cluster)] as const
    const [here, there] = both
    await openAll(both, ['a', 'b', 'c', 'd'])
    const keys = here.epochKeys()
    t.match(await here.sessions.get('a'), { live: {} })
    const frozen = await cluster.primaryOf(keys[1] ?? '')
    frozen.signal('SIGSTOP')
    t.after(() => frozen.signal('SIGCONT'))
    await t.rejects(there.store.epoch(), { code: 'session.unavailable' })
    frozen.signal('SIGCONT')
    await until('all is known again', async () => 'live' in (await there.sessions.get('b')))
  }
)
