import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { hashOf } from '../../support/users.ts'
import { run } from '../../support/command.ts'
import {
  configFolder,
  cookieOf,
  password,
  type TestGateway,
  testGateway
} from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const hash = hashOf(password)
const otherHash = hashOf('another password')

type Users = Record<string, Record<string, unknown>>

const alice = { password: hash, id: '1', roles: ['admin', 'user'] }
const bob = { password: hash, id: '2', roles: ['admin', 'user'] }
const both: Users = { alice, bob }

const write = (gateway: { readonly folder: string }, users: Users) =>
  writeFileSync(join(gateway.folder, 'users.yaml'), stringify({ users }))
const reload = async (gateway: TestGateway, body: object = {}) =>
  (await (await gateway.ops('/ops/api/reload', { json: body })).json()) as any
/** The status of a profile call, and the roles that the session has. */
const seen = async (gateway: TestGateway, cookie: string) => {
  const { status, json } = await gateway.call('/api/session', { cookie })
  return status === 200 ? json.data.roles.join(',') : `${status} ${json.errorCode}`
}

/** Replicas on one Redis, each with a folder of its own. */
async function replicas(t: Test, first: Users, ...rest: Users[]): Promise<TestGateway[]> {
  const redis = await testRedis(t.after)
  const gateway = {
    redis: { url: redis.url, commandTimeout: '30s' },
    session: { secrets: ['${SESSION_SECRET}'] }
  }
  const all: TestGateway[] = []
  for (const users of [first, ...rest]) {
    all.push(await testGateway(t.after, { gateway, users: { users } }, environment))
  }
  for (const each of all) {
    await until('ready', async () => (await each.ops('/readyz')).status === 200)
  }
  return all
}

for (const [change, bobs, told] of [
  ['removed', undefined, 'removed'],
  ['disabled', { ...bob, disabled: true }, 'disabled'],
  ['given another password', { ...bob, password: otherHash }, 'password changed'],
  ['given another id', { ...bob, id: '3' }, 'removed']
] as const) {
  t.test(`a file user who is ${change} is signed out by the reload, which says so`, async t => {
    const gateway = await testGateway(t.after, { users: { users: both } })
    const [hers, ...his] = [
      await gateway.signIn('alice'),
      await gateway.signIn('bob'),
      await gateway.signIn('bob')
    ]
    for (const cookie of [hers, ...his]) t.equal(await seen(gateway, cookie), 'admin,user')
    write(gateway, bobs === undefined ? { alice } : { alice, bob: bobs })
    const line = `users.bob ${told}; 2 sessions closed`
    t.match(await reload(gateway), { outcome: 'reloaded', sessions: [line] })
    t.match(
      gateway.log.find(({ msg }) => msg === line),
      { event: 'users.changed', user: 'bob', source: 'users-file', closed: 2 }
    )
    for (const cookie of his) t.equal(await seen(gateway, cookie), '401 session.revoked')
    t.equal(await seen(gateway, hers), 'admin,user', 'nobody else is')
  })
}

t.test('roles and profile are taken anew by live sessions', async t => {
  const gateway = await testGateway(t.after, { users: { users: both } })
  const cookie = await gateway.signIn('bob')
  t.equal(await seen(gateway, cookie), 'admin,user')
  write(gateway, { alice, bob: { ...bob, roles: ['user'], profile: { title: 'Guest' } } })
  t.match(await reload(gateway), { outcome: 'reloaded', sessions: [] })
  t.equal(await seen(gateway, cookie), 'user')
  t.match((await gateway.call('/api/account/profile', { cookie })).json.data, { title: 'Guest' })
  write(gateway, both)
  await reload(gateway)
  t.equal(await seen(gateway, cookie), 'admin,user', 'back again')
})

t.test('a reload that concerns no user leaves sessions alone and says nothing of them', async t => {
  const gateway = await testGateway(t.after, { users: { users: both } })
  const cookie = await gateway.signIn('bob')
  write(gateway, { ...both, carol: { password: hash } })
  t.match(await reload(gateway), { outcome: 'reloaded', sessions: [] })
  t.equal(await seen(gateway, cookie), 'admin,user')
})

t.test('replicas that read their files at different times: each goes by its own', async t => {
  const [a, b] = (await replicas(t, both, both)) as [TestGateway, TestGateway]
  const [his, hers] = [await b.signIn('bob'), await b.signIn('alice')]
  for (const gateway of [a, b]) {
    t.same([await seen(gateway, his), await seen(gateway, hers)], ['admin,user', 'admin,user'])
  }
  const later = { alice: { ...alice, roles: ['user'] } }
  write(a, later)
  t.match(await reload(a), { sessions: ['users.bob removed; 1 session closed'] })
  t.equal(await seen(a, his), '401 session.revoked')
  await until('the other hears of it', async () => (await seen(b, his)) === '401 session.revoked')
  t.same([await seen(a, hers), await seen(b, hers)], ['user', 'admin,user'])
  const stale = await b.signIn('bob')
  t.equal(await seen(a, stale), '401 session.revoked')
  t.equal(await seen(b, stale), 'admin,user', 'its file still knows him')
  write(b, later)
  t.match(await reload(b), { sessions: ['users.bob removed; 1 session closed'] })
  t.same([await seen(a, hers), await seen(b, hers)], ['user', 'user'])
})

t.test('a replica with an older file ends no session that a later file allows', async t => {
  const [a, b] = (await replicas(t, both, both)) as [TestGateway, TestGateway]
  write(a, {
    alice,
    bob: { ...bob, password: otherHash },
    carol: { password: hash, roles: ['user'] }
  })
  await reload(a)
  const carols = await a.signIn('carol')
  const login = await a.call('/api/auth/admin/login', {
    json: { username: 'bob', password: 'another password' }
  })
  const bobs = cookieOf(login)
  for (const cookie of [carols, bobs]) {
    t.equal(await seen(b, cookie), '401 session.revoked', 'its file does not know them')
  }
  t.same([await seen(a, carols), await seen(a, bobs)], ['user', 'admin,user'])
  write(b, {
    alice,
    bob: { ...bob, password: otherHash },
    carol: { password: hash, roles: ['user'] }
  })
  await reload(b)
  t.same(
    [await seen(b, carols), await seen(b, bobs)],
    ['user', 'admin,user'],
    'once it has read the file'
  )
})

t.test(
  'what changed while Redis was away ends sessions once it is back, though nobody uses them',
  async t => {
    const redis = await testRedis(t.after)
    const config = (commandTimeout: string, users: Users) => ({
      gateway: {
        redis: { url: redis.url, commandTimeout },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      users: { users }
    })
    const b = await testGateway(t.after, config('30s', both), environment)
    await until('ready', async () => (await b.ops('/readyz')).status === 200)
    const [his] = [await b.signIn('bob'), await b.signIn('alice')]
    const lesser = { ...alice, roles: ['user'] }
    const a = await testGateway(t.after, config('2s', { alice: lesser, bob }), environment)
    await until('ready', async () => (await a.ops('/readyz')).status === 200)
    write(a, { alice: lesser })
    redis.signal('SIGSTOP')
    t.match(await reload(a), {
      outcome: 'reloaded',
      sessions: [/could not be compared with the users files/]
    })
    redis.signal('SIGCONT')
    await a.logged(({ msg }) => msg === 'users.bob removed; 1 session closed')
    await until(
      'the replica with the older file hears of it',
      async () => (await seen(b, his)) === '401 session.revoked'
    )
    const lines = a.log.filter(({ event, user }) => event === 'users.changed' && user === 'bob')
    t.equal(lines.length, 1, 'once')
  }
)

t.test('what changed while no gateway ran is judged at start', async t => {
  const redis = await testRedis(t.after)
  const gateway = {
    redis: { url: redis.url, commandTimeout: '30s' },
    session: { secrets: ['${SESSION_SECRET}'] }
  }
  const before = await testGateway(t.after, { gateway, users: { users: both } }, environment)
  await until('ready', async () => (await before.ops('/readyz')).status === 200)
  const [his, hers] = [await before.signIn('bob'), await before.signIn('alice')]
  const after = await testGateway(
    t.after,
    { gateway, users: { users: { alice: { ...alice, roles: ['user'] } } } },
    environment
  )
  await after.logged(({ msg }) => msg === 'users.bob removed; 1 session closed')
  t.equal(await seen(after, his), '401 session.revoked')
  t.equal(await seen(after, hers), 'user')
  await until(
    'an older replica does not bring him back',
    async () => (await seen(before, his)) === '401 session.revoked'
  )
})

t.test(
  'a reload in which most users of a file vanish is refused, unless --yes says that it is meant',
  async t => {
    const ops = { listen: `127.0.0.1:${await freePort()}` }
    const names = ['bob', 'carol', 'dave', 'erin', 'frank']
    const five = Object.fromEntries(names.map(name => [name, { password: hash }]))
    const four = Object.fromEntries(names.slice(1).map(name => [name, { password: otherHash }]))
    const folder = await configFolder({ gateway: { ops }, users: { users: { alice, ...five } } })
    const gateway = await testGateway(t.after, folder)
    const his = await gateway.signIn('bob')
    write(gateway, { alice })
    const refused = await run(['reload', '--config', folder])
    t.equal(refused.code, 1)
    t.match(
      refused.err,
      '5 of 6 users of source users-file vanish or change their password: if that is meant, ' +
        'run `console-gateway reload --yes`'
    )
    t.equal(await seen(gateway, his), '')
    write(gateway, { alice, ...five, ...four })
    t.match(await reload(gateway), { outcome: 'reloaded' }, 'fewer than five are no question')
    write(gateway, { alice, ...five })
    await reload(gateway)
    const again = await gateway.signIn('bob')
    const passwords = Object.fromEntries(names.map(name => [name, { password: otherHash }]))
    write(gateway, { alice, ...passwords })
    t.match(await reload(gateway), { outcome: 'refused' }, 'new passwords of all are one')
    write(gateway, { alice })
    const meant = await run(['reload', '--yes', '--config', folder])
    t.match(meant, { code: 0, out: /users\.bob removed; 2 sessions closed\n/ })
    t.equal(await seen(gateway, again), '401 session.revoked')
  }
)

t.test('a session of a source that config no longer names is over', async t => {
  const redis = await testRedis(t.after)
  const gateway = (name: string) => ({
    redis: { url: redis.url, commandTimeout: '30s' },
    session: { secrets: ['${SESSION_SECRET}'] },
    login: { sources: { [name]: { kind: 'users-file' } } }
  })
  const before = await testGateway(t.after, { gateway: gateway('users-file') }, environment)
  await until('ready', async () => (await before.ops('/readyz')).status === 200)
  const cookie = await before.signIn('bob')
  const after = await testGateway(t.after, { gateway: gateway('staff') }, environment)
  await until('ready', async () => (await after.ops('/readyz')).status === 200)
  t.equal(await seen(after, cookie), '401 session.revoked')
  t.match(await seen(after, await after.signIn('bob')), 'user')
})
