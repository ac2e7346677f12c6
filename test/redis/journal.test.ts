import t from 'tap'
import { endByProvider, providerName } from '../../src/session/provider-sessions.ts'
import { testRedis } from '../support/redis.ts'
import { testSentinel } from '../support/sentinel.ts'
import {
  hour,
  newSession,
  openingOf,
  redisStore,
  sessionsOver,
  signIn
} from '../support/sessions.ts'
import { profile, replica } from '../support/trial.ts'
import { until } from '../support/until.ts'

t.test('a replica of Redis that hangs holds up no sign-in and no sign-out', async t => {
  const sentinel = await testSentinel(t.after)
  const gateway = await replica(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  sentinel.servers[1].signal('SIGSTOP')
  const cookie = await gateway.signIn()
  const answer = await gateway.call('/api/account/logout', { cookie, method: 'POST' })
  t.equal(answer.status, 200)
  sentinel.servers[1].signal('SIGCONT')
  t.equal(await gateway.status(profile, { cookie }), 401)
})

const gone = { code: 'session.unavailable' }
const user = { source: 's', id: '1', username: 'u' }
const other = { source: 's', id: '2', username: 'v' }

t.test('a primary that missed a revocation hears of it before it is read from', async t => {
  const { url, cli } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  const opening = openingOf(user)
  const { key } = opening
  await store.open(opening)
  const record = `{test}:s:${key}`
  const [dump, [list = '']] = [await client.get(record), await client.keys('{test}:u:*')]
  const [id = ''] = await client.zrange(list, '0', '-1')
  await store.end(user, [key], 'revoked')
  await cli('SET', record, dump ?? '', 'PX', String(hour))
  await cli('ZADD', list, String(Date.now() + hour), id)
  t.match(await store.read(key), { sealed: 'sealed' }, 'as a primary that missed it')
  await cli('CLIENT', 'KILL', 'TYPE', 'normal')
  let found: unknown
  await until('the store answers again', async () => {
    found = await store.read(key)
    return found !== undefined
  })
  t.same(found, { ended: 'revoked' })
})

t.test('after a failover no session is unknown before it is written again', async t => {
  const { url } = await testRedis(t.after)
  const opener = await redisStore(t.after, url)
  const reader = await redisStore(t.after, url)
  const [late, never] = [openingOf(user), openingOf(user)]
  t.equal(await reader.store.read(late.key), undefined)
  // As at a connection to another server than before.
  reader.store.replay(true)
  await t.rejects(reader.store.read(late.key), gone)
  await opener.store.open(late)
  t.match(await reader.store.read(late.key), { sealed: 'sealed' })
  await until('what nobody wrote is unknown', async () => {
    return (await reader.store.read(never.key).catch(() => null)) === undefined
  })
})

t.test('a Redis that lost what was written gets it again: openings, ends, everyone', async t => {
  const redis = await testRedis(t.after)
  const [a, b] = [await redisStore(t.after, redis.url), await redisStore(t.after, redis.url)]
  const [before, kept, endedByA, endedByB, evicted] = [other, user, user, user, other].map(whose =>
    openingOf(whose)
  )
  await a.store.open(before!)
  await b.store.endAll()
  for (const each of [kept, endedByA, endedByB, evicted]) await a.store.open(each!)
  await a.store.end(user, [endedByA!.key], 'upstream')
  await b.store.end(user, [endedByB!.key], 'revoked')
  const newer = openingOf(other, { max: 1 })
  await b.store.open(newer)
  for (const order of [
    [a, b],
    [b, a],
    [a, b, a, b]
  ]) {
    await a.client.flushall()
    for (const { store } of order) store.replay(true)
    await Promise.all(order.map(async ({ client }) => await client.ping()))
    t.match(await a.store.read(kept!.key), { sealed: 'sealed' })
    t.match(await a.store.read(newer.key), { sealed: 'sealed' })
    t.same(await a.store.read(endedByA!.key), { ended: 'upstream' })
    t.same(await a.store.read(endedByB!.key), { ended: 'revoked' })
    t.same(await a.store.read(evicted!.key), { ended: 'replaced' })
    const revoked = await a.store.read(before!.key).catch(() => undefined)
    t.ok(revoked === undefined || 'ended' in revoked, 'everyone was out before the others came')
    t.equal((await a.store.signedIn(0)).total, 2)
  }
  await redis.kill()
  await t.rejects(a.store.read(kept!.key), gone)
  await t.rejects(a.store.end(user, [kept!.key], 'revoked'), gone, 'it is done later')
  await redis.start()
  await until('both are back', () => [a, b].every(({ client }) => client.status === 'ready'))
  await b.client.ping()
  await until('the same server has lost it', async () => {
    return (await b.store.read(newer.key).catch(() => null)) === undefined
  })
  t.same(await a.store.read(kept!.key), { ended: 'revoked' })
  const last = openingOf(other)
  await b.store.open(last)
  await a.store.endAll()
  for (const { store } of [a, b]) store.replay(true)
  await b.client.ping()
  t.same(await a.store.read(last.key), { ended: 'revoked' }, 'an epoch is never used twice')
})

t.test('another server of Redis hears of the logouts and sessions that it missed', async t => {
  const { url, cli } = await testRedis(t.after)
  const { store } = await redisStore(t.after, url)
  const sessions = sessionsOver(store)
  const [sid, sub] = [providerName('s', 'sid', '1'), providerName('s', 'sub', 'u')]
  const opening = (issuedAt: number, names: string[]) =>
    newSession('u', { provider: { names, issuedAt } })
  const { live } = await signIn(sessions, opening(1, [sid]))
  await endByProvider(sessions, sub, 5, {})
  await cli('FLUSHALL')
  store.replay(true)
  await t.rejects(signIn(sessions, opening(4, [sid, sub])), { code: 'session.upstream' })
  t.equal((await endByProvider(sessions, sid, 6, {})).length, 1)
  t.same(await store.read(live.key), { ended: 'upstream' })
})
