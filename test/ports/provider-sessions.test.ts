import t from 'tap'
import { endByProvider, providerName } from '../../src/session/provider-sessions.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import {
  look,
  newSession,
  redisStore,
  sessionsOver,
  signIn,
  withMethods
} from '../support/sessions.ts'
import { until } from '../support/until.ts'

const [sid, sub] = [providerName('s', 'sid', '1'), providerName('s', 'sub', 'u')]
const opening = (issuedAt: number, names = [sid, sub]) =>
  newSession('u', { provider: { names, issuedAt } })

t.test('a provider’s logout at one replica ends its sessions at another', async t => {
  const { url } = await testRedis(t.after)
  const stores = [await redisStore(t.after, url), await redisStore(t.after, url)]
  const [here, there] = stores.map(({ store }) => sessionsOver(store))
  const both = [await signIn(here!, opening(1)), await signIn(here!, opening(1, [sub]))]
  const other = await signIn(here!, newSession('v'))
  const isAlive = async ({ secretId }: { secretId: string }) =>
    'live' in (await look(here!, secretId))
  const alive = async () => await Promise.all([...both, other].map(isAlive))
  t.same(await alive(), [true, true, true])
  const [ended] = await endByProvider(there!, sid, 2, {})
  t.equal(ended?.id, both[0]?.live.session.id)
  await until('heard of', async () => !(await isAlive(both[0]!)))
  t.same(await alive(), [false, true, true], 'the session alone')
  t.same(await endByProvider(there!, sid, 2, {}), [], 'it is over')
  t.equal((await endByProvider(there!, sub, 2, {})).length, 1)
  await until('heard of', async () => !(await isAlive(both[1]!)))
  t.same(await look(there!, both[1]!.secretId), { ended: 'upstream' })
  t.equal(await isAlive(other), true)
})

t.test(
  'a logout ends a sign-in that is under way, at whatever moment, and none after it',
  async t => {
    const { url } = await testRedis(t.after)
    const { store } = await redisStore(t.after, url)
    const sessions = sessionsOver(store)
    const logout = async () => await endByProvider(sessions, sub, 5, {})
    await logout()
    for (const before of [4, 5]) {
      await t.rejects(signIn(sessions, opening(before)), { code: 'session.upstream' }, `${before}`)
    }
    const later = await signIn(sessions, opening(6))
    t.ok('live' in (await look(sessions, later.secretId)))
    const slow = sessionsOver(
      withMethods(store, {
        open: async given => {
          t.equal((await logout()).length, 1, 'that of before')
          return await store.open(given)
        }
      })
    )
    const late = await signIn(slow, opening(6))
    t.same(await look(sessions, late.secretId), { ended: 'upstream' })
  }
)

t.test(
  'another server of Redis knows of logouts and of sessions that could not reach it',
  async t => {
    const { url, port } = await testRedis(t.after)
    const { store } = await redisStore(t.after, url)
    const sessions = sessionsOver(store)
    const { secretId } = await signIn(sessions, opening(1, [sid]))
    await endByProvider(sessions, sub, 5, {})
    await redisCli(port, 'FLUSHALL')
    store.replay(true)
    await t.rejects(signIn(sessions, opening(4)), { code: 'session.upstream' })
    t.equal((await endByProvider(sessions, sid, 6, {})).length, 1)
    t.same(await look(sessions, secretId), { ended: 'upstream' })
  }
)
