/** Which of the users files that replicas have read is the latest, by what each tells Redis. */
import t, { type Test } from 'tap'
import { createFileUsers, type Sources } from '../../src/login/file-users.ts'
import { createRedisDialler } from '../../src/services/redis.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { StoreUnavailable } from '../../src/session/store.ts'
import { redisConfig } from '../support/config.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const source = 'users-file'

/** A config whose users file has this user. */
const fileOf = (username: string) =>
  ({
    gateway: { login: { sources: [{ kind: source, file: 'users.yaml' }] } },
    users: { 'users.yaml': { users: { [username]: { password: 'a hash', roles: [] } } } }
  }) as unknown as Sources
const [a, b, c] = [fileOf('a'), fileOf('b'), fileOf('c')]

async function setUp(t: Test) {
  const { url } = await testRedis(t.after)
  const ready = Promise.withResolvers<void>()
  const dialler = createRedisDialler(
    redisConfig({ url, connectTimeout: 30_000, commandTimeout: 30_000 }),
    '.'
  )
  const redis = dialler.client({ onUp: () => ready.resolve(), onDown: () => {} })
  t.after(() => redis.disconnect())
  await ready.promise
  const store = createRedisStore({ redis, prefix: 'test:', follow: () => {} })
  /** A process that has read these files, one after another. */
  const replica = async (...files: readonly Sources[]) => {
    const users = createFileUsers(store.announceUsers)
    for (const file of files) {
      users.activate(file)
      await users.isLatest(source)
    }
    return users
  }
  return { store, replica }
}

t.test('the file that was read last is the latest, and one that came back is so again', async t => {
  const { replica } = await setUp(t)
  const [old, changed] = [await replica(a), await replica(a, b)]
  t.same([await old.isLatest(source), await changed.isLatest(source)], [false, true])
  changed.activate(a)
  t.equal(await changed.isLatest(source), true)
  t.equal(await old.isLatest(source), true)
  t.equal(await (await replica(b)).isLatest(source), false)
  t.equal(await changed.isLatest('upstream-login:b'), true, 'of other sources nothing is told')
})

t.test('a process whose file is not the latest says so once', async t => {
  const { store, replica } = await setUp(t)
  const outdated: string[] = []
  const users = createFileUsers(store.announceUsers, {
    onOutdated: name => void outdated.push(name)
  })
  users.activate(a)
  await users.isLatest(source)
  t.same(outdated, [])
  await replica(a, b)
  await users.isLatest(source)
  await users.isLatest(source)
  t.same(outdated, [source])
  users.activate(c)
  t.equal(await users.isLatest(source), true)
  await replica(c, a)
  await users.isLatest(source)
  t.same(outdated, [source, source], 'of each state')
})

t.test('a process that does not know a source yet ends no session of it', async t => {
  const { replica } = await setUp(t)
  const hr = { kind: 'upstream-login', name: 'hr', upstream: 'b' }
  const withHr = { ...a, gateway: { login: { sources: [...a.gateway.login.sources, hr] } } }
  const isLatest = async (files: object) => await (await replica(files as Sources)).isLatest('hr')
  const old = await replica(a)
  t.equal(await old.isLatest('hr'), true, 'a source that was removed before any replica told')
  t.equal(await isLatest(withHr), true)
  t.equal(await old.isLatest('hr'), false, 'another replica knows more sources')
  t.equal(await old.isLatest(source), true, 'of a source that both have')
  t.equal(
    await isLatest(a),
    false,
    'a replica that starts with the old sources during the roll-out'
  )
  t.equal(await isLatest({ ...a, gateway: { login: { sources: [] } } }), true, 'all are removed')
})

t.test('a change back before Redis has answered to the first is the latest', async t => {
  for (const ending of ['late', 'lost'] as const) {
    const { store, replica } = await setUp(t)
    const gate = Promise.withResolvers<void>()
    let isHeld = false
    let executed = 0
    const users = createFileUsers(async (...entry) => {
      const hold = isHeld
      const isLatest = await store.announceUsers(...entry)
      executed++
      if (!hold) return isLatest
      await gate.promise
      if (ending === 'lost') throw new StoreUnavailable(new Error('no reply in time'))
      return isLatest
    })
    users.activate(a)
    t.equal(await users.isLatest(source), true)
    const before = executed
    isHeld = true
    users.activate(b)
    await until('Redis has heard of the change', () => executed > before)
    isHeld = false
    users.activate(a)
    gate.resolve()
    t.equal(await users.isLatest(source), true, ending)
    t.equal(await (await replica(a)).isLatest(source), true, ending)
    t.equal(await (await replica(b)).isLatest(source), false, ending)
  }
})

t.test('of files that Redis could not be told of, each is older than the next', async t => {
  const { store, replica } = await setUp(t)
  let isAway = false
  const users = createFileUsers(async (...entry) => {
    if (isAway) throw new StoreUnavailable(new Error('away'))
    return await store.announceUsers(...entry)
  })
  users.activate(a)
  t.equal(await users.isLatest(source), true)
  isAway = true
  users.activate(b)
  await t.rejects(users.isLatest(source), { code: 'session.unavailable' })
  users.activate(c)
  const old = await replica(a)
  t.equal(await old.isLatest(source), true)
  isAway = false
  await until('Redis is told without a question', async () => !(await old.isLatest(source)))
  t.equal(await users.isLatest(source), true)
  t.equal(await (await replica(b)).isLatest(source), false)
  t.equal(await (await replica(a)).isLatest(source), false)
  t.equal(await users.isLatest(source), true)
})

t.test('of files that were read before Redis was there, the first is older too', async t => {
  const { store, replica } = await setUp(t)
  let isAway = true
  const users = createFileUsers(async (...entry) => {
    if (isAway) throw new StoreUnavailable(new Error('away'))
    return await store.announceUsers(...entry)
  })
  for (const file of [a, b, c]) users.activate(file)
  isAway = false
  t.equal(await users.isLatest(source), true)
  t.equal(await (await replica(a)).isLatest(source), false)
  t.equal(await users.isLatest(source), true)
})

t.test('a change is told once: what another replica took back stays so', async t => {
  const { replica } = await setUp(t)
  const [first, second] = [await replica(a, b), await replica(b, a)]
  t.equal(await second.isLatest(source), true)
  t.equal(await first.isLatest(source), false)
  t.equal(await second.isLatest(source), true)
})
