/** Keys for scripts, from the commands that make them to the requests of back-ends. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { run } from '../support/command.ts'
import { audit, type CallOptions, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { lookAgain } from '../support/look-again.ts'
import { testRedis } from '../support/redis.ts'
import { openStream, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { closed, dial, webSocketUpstream } from '../support/websocket.ts'

const backend = await streamingBackend(t.teardown)
const sockets = await webSocketUpstream(t.teardown)

const opened = { passHeaders: ['authorization'] }
const routes = {
  upstreams: {
    w: { url: sockets.url },
    shop: { url: backend.url, credential: { as: 'bearer', from: 'shop' } }
  },
  endpoints: { check: { path: '/api/auth/check' } },
  routes: {
    orders: { ...opened, path: '/api/orders/*', methods: ['GET', 'POST'], keys: true },
    admins: { access: { roles: ['admin'] }, keys: true },
    closed: {},
    shop: { upstream: 'shop', keys: true },
    open: { ...opened, access: 'public' },
    live: { upstream: 'w', websocket: {}, keys: true }
  }
}

const shop = {
  ...{ kind: 'upstream-login', upstream: 'b', path: '/login', token: 'token' },
  user: { id: 'id', username: 'name' }
}

async function start(t: Test, redis?: string, limits = {}, session = {}) {
  const gateway = await testGateway(t.after, {
    gateway: {
      audit,
      session,
      identity: { source: 'x-user-source' },
      login: { sources: { 'users-file': { kind: 'users-file' }, shop } }
    },
    redis,
    backend: backend.url,
    routes,
    limits: { limits },
    code: { 'next-secret': 'another session secret of thirty-two' }
  })
  const keys = async (...words: string[]) => await run(['keys', ...words, '-c', gateway.folder])
  const create = async (...words: string[]) => (await keys('create', ...words)).out.trim()
  const withKey = async (key: string, path: string, options: CallOptions = {}) => {
    const headers = { authorization: `Bearer ${key}`, ...options.headers }
    return await gateway.call(path, { ...options, headers })
  }
  const statusOf = async (key: string) => (await withKey(key, '/api/orders/1')).status
  return { ...gateway, keys, create, withKey, statusOf }
}

const unknownKey = `cgk_${'a'.repeat(48)}`

t.test('a script calls with its key as users do, and its key goes nowhere', async t => {
  const gateway = await start(t)
  const made = await gateway.keys('create', 'nightly', '--role', 'user', '--role', 'importer')
  t.match(made, { code: 0, out: /^cgk_[\w-]{48}\n$/, err: /not shown again. It expires 20/ })
  const key = made.out.trim()

  const called = await gateway.withKey(key, '/api/orders/import', { method: 'POST' })
  t.equal(called.status, 200)
  t.equal(called.headers.get('set-cookie'), null)
  const { headers } = backend.seen.at(-1) ?? {}
  t.match(headers, {
    'x-user-id': 'key:nightly',
    'x-user-name': 'key:nightly',
    'x-user-roles': 'user,importer',
    'x-user-source': 'keys'
  })
  t.equal(headers?.authorization, undefined)
  await gateway.withKey(key, '/api/open')
  t.equal(backend.seen.at(-1)?.headers.authorization, undefined, 'on a public route either')
  const other = { headers: { authorization: 'Bearer of-the-client' } }
  await gateway.call('/api/open', other)
  t.match(backend.seen.at(-1), other, 'what is no key passes')

  const profile = await gateway.withKey(key, '/api/account/profile')
  t.match(profile, { status: 200, json: { data: { name: 'nightly' } } })
  t.match(await gateway.logged(line => line['route'] === 'orders'), { user: 'key:nightly' })
  const lines = () => linesIn(gateway.folder)
  await until('its request is in the ledger', () =>
    lines().some(({ route, user }) => route === 'orders' && user === 'key:nightly')
  )
  const detail = { name: 'nightly', createdBy: 'local' }
  const creation = lines().find(({ act }) => act === 'keys.create')
  t.match(creation, { operator: 'local', outcome: 'done', detail })
  const secret = key.slice(-32)
  t.notMatch(JSON.stringify([lines(), gateway.log]), secret, 'neither log nor ledger has it')
})

t.test('what a key may not do, and what is no key', async t => {
  const gateway = await start(t)
  const key = await gateway.create('viewer', '--role', 'user')
  const cookie = await gateway.signIn('alice')
  const [, inCookie = ''] = /=([\w-]{48})/.exec(cookie) ?? []
  const foreign = { headers: { origin: 'https://evil.example' }, method: 'POST' }
  type Row = readonly [string, string, number, (string | undefined)?, CallOptions?]
  const rows: readonly Row[] = [
    [key, '/api/orders/1', 200],
    [key, '/api/orders/1', 200, undefined, foreign],
    [key, '/api/orders/1', 200, undefined, { headers: { authorization: `bearer  ${key}` } }],
    [key, '/api/admins', 403, 'route.forbidden'],
    [key, '/api/admins', 403, 'route.forbidden', { cookie }],
    [key, '/api/shop', 403, 'route.credential'],
    [key, '/api/closed', 403, 'route.keys'],
    [key, '/api/closed', 403, 'route.keys', { cookie }],
    [key, '/api/auth/check', 403, 'route.keys'],
    [key, '/api/account/logout', 403, 'route.keys', { method: 'POST' }],
    [key, '/api/auth/admin/login', 403, 'route.keys', { json: {} }],
    [key, '/api/open', 200],
    [unknownKey, '/api/orders/1', 401, 'key.invalid'],
    [unknownKey, '/api/orders/1', 401, 'key.invalid', { cookie }],
    [`${key}a`, '/api/orders/1', 401, 'key.invalid'],
    [`${key.slice(0, -1)}?`, '/api/orders/1', 401, 'key.invalid'],
    [`cgk_${'-'.repeat(9000)}`, '/api/orders/1', 401, 'key.invalid'],
    [`cgk_${inCookie}`, '/api/orders/1', 401, 'key.invalid'],
    [key.slice('cgk_'.length), '/api/orders/1', 401, 'session.none'],
    ['of-the-console', '/api/orders/1', 200, undefined, { cookie }]
  ]
  for (const [sent, path, status, errorCode, options] of rows) {
    const called = await gateway.withKey(sent, path, options)
    const title = `${sent.slice(0, 9)} ${path} ${JSON.stringify(options ?? '')}`
    t.match([called.status, called.json.errorCode], [status, errorCode], title)
  }
  const refused = await gateway.withKey(unknownKey, '/api/orders/1')
  t.equal(refused.headers.get('www-authenticate'), 'Bearer error="invalid_token"')
  t.match((await gateway.withKey(key, '/api/closed')).json.errorMessage, /`keys: true`/)
})

t.test('keys are listed with their last use, end on time, and survive everyone’s end', async t => {
  for (const kind of ['memory', 'redis']) {
    const redis = kind === 'redis' ? await testRedis(t.after) : undefined
    const gateway = await start(t, redis?.url)
    const { keys, create, statusOf } = gateway
    t.match(await keys('list'), { code: 0, out: 'no keys\n' }, kind)
    const nightly = await create('nightly', '--role', 'user', '--for', '1h')
    const short = await create('short', '--for', '1s')
    t.match(await keys('create', 'nightly'), { code: 1, out: '', err: /There is a key "nightly"/ })
    t.match(await keys('create', 'no name'), { code: 2, out: '', err: /name must be valid/ })
    t.match(await keys('create', 'ever', '--for', 'ever'), { code: 2, err: /no duration/ })
    t.match((await keys('list')).out, /^nightly +user +never +20\S+Z +local$/m, kind)
    t.equal(await statusOf(nightly), 200)
    await until('its use is listed', async () =>
      /^nightly +user +20\S+Z +20\S+Z +local$/m.test((await keys('list')).out)
    )
    await until('the other expires', async () => (await statusOf(short)) === 401)
    t.match(JSON.parse((await keys('list', '--json')).out), { keys: [{ name: 'nightly' }] })

    const cookie = await gateway.signIn()
    await gateway.ops('/ops/api/sessions/close', { json: { everyone: true } })
    t.equal((await gateway.call('/api/account/profile', { cookie })).status, 401)
    t.equal(await statusOf(nightly), 200, 'a key is no session')
    const listed = await gateway.opsJson('sessions')
    t.match(listed, { users: 0, sessions: [] }, 'nor is it listed as one')
    t.match(await keys('revoke', 'nightly'), { code: 0, out: 'revoked: nightly\n' })
    t.match(await keys('revoke', 'nightly'), { code: 3, out: '', err: /No such key/ })
    t.equal(await statusOf(nightly), 401)
    const again = await create('nightly')
    t.equal(await statusOf(again), 200, 'the name is free')
    t.equal(await statusOf(nightly), 401, 'and the former key is not back')
  }
})

t.test('a revoked key ends within a second at each replica, with its streams', async t => {
  const redis = await testRedis(t.after)
  const gateway = await start(t, redis.url)
  const other = await start(t, redis.url)
  const key = await gateway.create('watcher')
  const headers = { authorization: `Bearer ${key}` }
  const events = await openStream(t.after, `${other.url}/api/orders/events`, { headers })
  const socket = await dial(`${other.url}/api/live`, { headers })
  t.equal(events.status, 200)
  const socketClosed = closed(socket)
  await other.keys('revoke', 'watcher')
  t.match(await socketClosed, { code: 4401, reason: 'session.revoked' })
  await events.ended
  t.equal(await other.statusOf(key), 401)

  const msOfAnother = async () => {
    const another = await gateway.create('another')
    t.equal(await gateway.statusOf(another), 200)
    await other.keys('revoke', 'another')
    const revokedAt = performance.now()
    await until('it is refused', async () => (await gateway.statusOf(another)) === 401)
    return performance.now() - revokedAt
  }
  const isSoon = (ms: number) => ms < 1000
  t.ok(isSoon(await lookAgain(msOfAnother, isSoon)))
})

t.test('Redis holds a hash; while it is away keys are 503, and after it as before', async t => {
  const redis = await testRedis(t.after)
  const gateway = await start(t, redis.url)
  const [used, unused] = [await gateway.create('used'), await gateway.create('unused')]
  t.equal(await gateway.statusOf(used), 200)
  const client = new Redis(redis.url)
  t.teardown(() => client.disconnect())
  const names = await client.keys('*')
  const dump = await Promise.all(names.map(async name => await client.dumpBuffer(name)))
  const all = [...names, ...dump.map(each => each?.toString('latin1'))].join('\n')
  for (const key of [used, unused]) t.notMatch(all, key.slice(-32))

  redis.signal('SIGSTOP')
  await until('an unknown key cannot be checked', async () => {
    const { status, json } = await gateway.withKey(unused, '/api/orders/1')
    return status === 503 && json.errorCode === 'session.unavailable'
  })
  redis.signal('SIGCONT')
  await until('it can again', async () => (await gateway.statusOf(unused)) === 200)
})

t.test('a key that is used outlives the secret of its day', async t => {
  const redis = await testRedis(t.after)
  const startWith = async (...names: readonly string[]) =>
    await start(t, redis.url, {}, { secrets: names.map(name => `file:${name}`) })
  const { create, stop } = await startWith('session-secret')
  const key = await create('old', '--role', 'user')
  await stop({ noticeMs: 0 })
  const both = await startWith('next-secret', 'session-secret')
  t.equal(await both.statusOf(key), 200)
  await until('its use is listed', async () => !/never/.test((await both.keys('list')).out))
  await both.stop({ noticeMs: 0 })
  const next = await startWith('next-secret')
  t.equal(await next.statusOf(key), 200)
})

t.test('a key has a budget of its own, and guesses take only that of their address', async t => {
  const max = { window: '1h', max: 3 }
  const limits = {
    'signed-in': { by: 'user', ...max },
    'scripts': { by: 'key', ...max, max: 5 },
    'anonymous': { by: 'address', ...max }
  }
  const gateway = await start(t, undefined, limits)
  const { create, statusOf } = gateway
  const [one, two] = [await create('one'), await create('two')]
  const times = async (count: number, key: string) =>
    await Array.fromAsync({ length: count }, async () => await statusOf(key))
  t.same(await times(4, unknownKey), [401, 401, 401, 429])
  t.same(await times(6, one), [200, 200, 200, 200, 200, 429])
  t.same(await times(1, two), [200])
  const cookie = await gateway.signIn('alice')
  const called = await gateway.call('/api/orders/1', { cookie })
  t.match([called.status, called.headers.get('ratelimit-policy')], [200, '"signed-in";q=3;w=3600'])
})
