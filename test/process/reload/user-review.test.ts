/** What a reload of a users file, or a start beside one, does to those who are signed in. */
import t, { type Test } from 'tap'
import { run } from '../../support/command.ts'
import { password, type TestGateway, testGateway, writeConfig } from '../../support/gateway.ts'
import { linesIn } from '../../support/ledger.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { hashOf } from '../../support/users.ts'

const hash = hashOf(password)
const otherHash = hashOf('another password')
const revoked = '401 session.revoked'
const admin = 'admin,user'

type Users = Record<string, Record<string, unknown>>

const alice = { password: hash, id: '1', roles: ['admin', 'user'] }
const bob = { password: hash, id: '2', roles: ['admin', 'user'] }
const both: Users = { alice, bob }
const lesser = { ...alice, roles: ['user'] }

const write = (gateway: { readonly folder: string }, users: Users) =>
  writeConfig(gateway.folder, 'users.yaml', { users })

/** Reloads with these users, and gives the answer. */
async function take(gateway: TestGateway, users: Users) {
  write(gateway, users)
  return await gateway.opsJson('reload', {})
}

/** The roles that each session has, or why it has none. */
async function seen(gateway: TestGateway, ...cookies: string[]): Promise<string[]> {
  const answers = cookies.map(async cookie => {
    const { status, json } = await gateway.call('/api/session', { cookie })
    return status === 200 ? json.data.roles.join(',') : `${status} ${json.errorCode}`
  })
  return await Promise.all(answers)
}

const hears = async (gateway: TestGateway, cookie: string) =>
  await until('it hears of the end', async () => (await seen(gateway, cookie))[0] === revoked)

/** Starts replicas on one Redis, each with a folder of its own. */
async function onRedis(t: Test) {
  const redis = await testRedis(t.after)
  const start = async (users = both, gateway = {}, commandTimeout = '30s') => {
    const files = { gateway, redis: { url: redis.url, commandTimeout }, users: { users } }
    const replica = await testGateway(t.after, files)
    await replica.ready()
    return replica
  }
  return { redis, start }
}

const files = { gateway: { audit: { key: 'file:session-secret' } }, users: { users: both } }
const single = await testGateway(t.teardown, files)
t.beforeEach(async () => void (await take(single, both)))

for (const [change, bobs, told] of [
  ['removed', undefined, 'removed'],
  ['disabled', { ...bob, disabled: true }, 'disabled'],
  ['given another password', { ...bob, password: otherHash }, 'password changed'],
  ['given another id', { ...bob, id: '3' }, 'removed']
] as const) {
  t.test(`a file user who is ${change} is signed out by the reload, which says so`, async t => {
    const hers = await single.signIn('alice')
    const his = [await single.signIn('bob'), await single.signIn('bob')]
    t.same(await seen(single, hers, ...his), [admin, admin, admin])
    const from = single.log.length
    const line = `users.bob ${told}; 2 sessions closed`
    const users = bobs === undefined ? { alice } : { alice, bob: bobs }
    t.match(await take(single, users), { outcome: 'reloaded', sessions: [line] })
    const logged = single.log.slice(from).find(({ msg }) => msg === line)
    t.match(logged, { event: 'users.changed', user: 'bob', source: 'users-file', closed: 2 })
    t.same(await seen(single, hers, ...his), [admin, revoked, revoked], 'nobody else is')
  })
}

t.test('roles and profile are taken anew by live sessions, and nothing else', async t => {
  const cookie = await single.signIn('bob')
  const taken = async (users: Users, roles: string) => {
    t.match(await take(single, users), { outcome: 'reloaded', sessions: [] })
    t.same(await seen(single, cookie), [roles])
  }
  await taken({ alice, bob: { ...bob, roles: ['user'], profile: { title: 'Guest' } } }, 'user')
  t.match((await single.call('/api/account/profile', { cookie })).json.data, { title: 'Guest' })
  await taken(both, admin)
  await taken({ ...both, carol: { password: hash } }, admin)
})

t.test('replicas that read their files at different times: each goes by its own', async t => {
  const { start } = await onRedis(t)
  const [a, b] = [await start(), await start()]
  const [his, hers] = [await b.signIn('bob'), await b.signIn('alice')]
  for (const gateway of [a, b]) t.same(await seen(gateway, his, hers), [admin, admin])
  const closed = { sessions: ['users.bob removed; 1 session closed'] }
  t.match(await take(a, { alice: lesser }), closed)
  t.same(await seen(a, his), [revoked])
  await hears(b, his)
  t.same([await seen(a, hers), await seen(b, hers)], [['user'], [admin]])
  const stale = await b.signIn('bob')
  t.same(await seen(a, stale), [revoked])
  t.same(await seen(b, stale), [admin], 'its file still knows him')
  t.match(await take(b, { alice: lesser }), closed)
  t.same([await seen(a, hers), await seen(b, hers)], [['user'], ['user']])
})

t.test('a replica with an older file ends no session that a later file allows', async t => {
  const { start } = await onRedis(t)
  const [a, b] = [await start(), await start()]
  const carol = { password: hash, roles: ['user'] }
  const later = { alice, bob: { ...bob, password: otherHash }, carol }
  await take(a, later)
  const carols = await a.signIn('carol')
  const bobs = await a.signIn('bob', { password: 'another password' })
  t.same(await seen(b, carols, bobs), [revoked, revoked], 'its file does not know them')
  t.same(await seen(a, carols, bobs), ['user', admin])
  await take(b, later)
  t.same(await seen(b, carols, bobs), ['user', admin], 'once it has read the file')
})

t.test('what changed while Redis was away ends sessions once it is back', async t => {
  const { redis, start } = await onRedis(t)
  const b = await start()
  const his = await b.signIn('bob')
  await b.signIn('alice')
  const a = await start({ alice: lesser, bob }, {}, '2s')
  redis.signal('SIGSTOP')
  const { outcome, sessions } = await take(a, { alice: lesser })
  t.match([outcome, ...sessions], ['reloaded', /could not be compared with the users files/])
  redis.signal('SIGCONT')
  await a.logged(({ msg }) => msg === 'users.bob removed; 1 session closed')
  await hears(b, his)
  const lines = a.log.filter(({ event, user }) => event === 'users.changed' && user === 'bob')
  t.equal(lines.length, 1, 'once')
})

t.test('what changed while no gateway ran is judged at start', async t => {
  const { start } = await onRedis(t)
  const before = await start()
  const [his, hers] = [await before.signIn('bob'), await before.signIn('alice')]
  const after = await start({ alice: lesser }, files.gateway)
  await after.logged(({ msg }) => msg === 'users.bob removed; 1 session closed')
  const lines = () => linesIn(after.folder).filter(({ kind }) => kind === 'sessions.revoked')
  await until('its line is written', () => lines().length > 0)
  t.match(lines(), [{ user: 'bob', detail: { by: 'users-file' } }])
  t.same(await seen(after, his, hers), [revoked, 'user'])
  // An older replica does not bring him back.
  await hears(before, his)
})

t.test('a reload in which most users of a file vanish is refused without --yes', async t => {
  const names = ['bob', 'carol', 'dave', 'erin', 'frank']
  const having = (password: string, of = names) =>
    Object.fromEntries(of.map(name => [name, { password }]))
  const reload = async (...words: string[]) =>
    await run(['reload', ...words, '--config', single.folder])
  await take(single, { alice, ...having(hash) })
  const his = await single.signIn('bob')
  write(single, { alice })
  const refused = await reload()
  t.equal(refused.code, 1)
  t.match(
    refused.err,
    '5 of 6 users of source users-file vanish or change their password: if that is meant, ' +
      'run `console-gateway reload --yes`'
  )
  t.same(await seen(single, his), [''])
  const four = { ...having(hash), ...having(otherHash, names.slice(1)) }
  t.match(await take(single, { alice, ...four }), { outcome: 'reloaded' }, 'fewer than five')
  await take(single, { alice, ...having(hash) })
  const again = await single.signIn('bob')
  const passwords = { alice, ...having(otherHash) }
  t.match(await take(single, passwords), { outcome: 'refused' }, 'new passwords of all are one')
  write(single, { alice })
  const meant = await reload('--yes')
  t.match(meant, { code: 0, out: /users\.bob removed; 2 sessions closed\n/ })
  t.same(await seen(single, again), [revoked])
  const lines = linesIn(single.folder).filter(({ kind }) => kind === 'config.reload')
  t.match(lines.slice(-2), [
    { outcome: 'refused', detail: { 1: /5 of 6 users of source users-file vanish/ } },
    { outcome: 'done' }
  ])
})

t.test('a session of a source that config no longer names is over', async t => {
  const { start } = await onRedis(t)
  const named = (name: string) => ({ login: { sources: { [name]: { kind: 'users-file' } } } })
  const before = await start(both, named('users-file'))
  const cookie = await before.signIn('bob')
  const after = await start(both, named('staff'))
  t.same(await seen(after, cookie), [revoked])
  t.match(await seen(after, await after.signIn('bob')), [admin])
})
