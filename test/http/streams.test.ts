/**
 * Streams through the gateway: bound to their session, role and route, unbuffered, and whole or
 * visibly cut; they end at a stop by and by, and ask little of Redis.
 */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { merged } from '../support/config-files.ts'
import { type Files, testGateway, writeConfig } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { beginMaintenance } from '../support/ops.ts'
import { open as connect, request } from '../support/raw.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { openStream, type StreamClient, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { wireRoutes } from '../support/wire.ts'

type WireRoutes = ReturnType<typeof wireRoutes>

const promisedMs = 1000

/** @param files whose routes are added to those of every wire */
async function open(t: Test, upstream: object = {}, files: Files = {}) {
  const backend = await streamingBackend(t.after)
  const routes = merged(wireRoutes(backend.url, upstream), files.routes ?? {}) as WireRoutes
  const gateway = await testGateway(t.after, { ...files, routes })
  await gateway.ready()
  const cookie = await gateway.signIn()
  const stream = async (path: string, options: object = {}) => {
    const client = await openStream(t.after, gateway.url + path, { cookie, ...options })
    t.equal(client.status, 200, path)
    await until(`${path} flows`, () => client.bytes() > 0)
    return client
  }
  /** All end within the promise; what the machine itself was late by is not the gateway's. */
  const endBySignOut = async (clients: readonly StreamClient[]) => {
    const stoodStillMs = standstill()
    await gateway.call('/api/account/logout', { method: 'POST', cookie })
    const startedAt = performance.now()
    await until('all end', () => clients.every(({ isOver }) => isOver()), 20_000)
    const ends = await Promise.all(clients.map(async ({ ended }) => await ended))
    const slowestMs = Math.max(...ends.map(({ at }) => at - startedAt))
    t.ok(slowestMs <= promisedMs + stoodStillMs(), `within ${Math.round(slowestMs)} ms`)
    t.same([...new Set(ends.map(({ how }) => how))], ['whole'])
  }
  const isLeftAlone = async () =>
    await until('the back-end is left alone', () => backend.open() === 0)
  return { backend, routes, gateway, cookie, stream, endBySignOut, isLeftAlone }
}

t.test('sign-out ends event streams cleanly, and frees their connections', async t => {
  const { backend, gateway, cookie, stream, endBySignOut, isLeftAlone } = await open(t, {
    connections: 4
  })
  const paths = Array<string>(20).fill('/api/things/events')
  const streams = await Promise.all(paths.map(path => stream(path)))
  t.equal(backend.open(), 20)
  await endBySignOut(streams)
  await isLeftAlone()
  t.notMatch(streams[0]?.text(), /session-ended/)
  t.match(streams[0]?.text(), /data: tick\n\n$/)
  t.equal((await gateway.call('/api/things/events', { cookie })).status, 401)
  t.match(await gateway.logged(({ path }) => path === '/api/things/events'), {
    status: 200,
    code: 'session.revoked'
  })
})

t.test('public streams go on, and what unsafe requests answer is finished', async t => {
  const { stream, endBySignOut } = await open(t)
  const anyone = await stream('/api/open/events')
  const bound = await stream('/api/things/events')
  const answer = await stream('/api/things/file', { method: 'POST', body: 'x' })
  const events = await stream('/api/things/events', { method: 'POST', body: 'x' })
  await endBySignOut([bound, events])
  const [before, publicBefore] = [answer.bytes(), anyone.bytes()]
  await until('both go on', () => answer.bytes() > before && anyone.bytes() > publicBefore)
})

t.test('a client that does not read its stream is cut all the same', async t => {
  const { gateway, cookie, stream, endBySignOut, isLeftAlone } = await open(t)
  const reader = await stream('/api/things/events')
  const { socket, until: received } = await connect(t.after, gateway.url)
  socket.write(request('GET /api/things/file', [`Cookie: ${cookie}`]))
  await received(text => text !== '')
  socket.pause()
  await endBySignOut([reader])
  await isLeftAlone()
})

t.test('event streams take no connection from other requests, and are bounded', async t => {
  const { backend, gateway, cookie, stream } = await open(t, { connections: 2 })
  const accept = { accept: 'text/event-stream' }
  for (let n = 0; n < 6; n++) await stream('/api/things/events', { headers: accept })
  const others = await Array.fromAsync({ length: 4 }, async () => await stream('/api/open/events'))
  const begun = backend.begun()
  for (const headers of [accept, {}]) {
    const refused = await gateway.call('/api/things/events', { cookie, headers })
    t.match(refused, { status: 503, json: { errorCode: 'overloaded' } })
    t.equal(refused.headers.get('retry-after'), '1')
  }
  t.equal(backend.begun(), begun + 1, 'one that asks for events does not reach the back-end')
  await until('the other one is ended there', () => backend.open() === 10)
  t.equal((await gateway.call('/api/things/other', { cookie })).status, 200, 'the rest works')

  others[0]?.leave()
  await until('one has left', () => backend.open() === 9)
  for (let n = 0; n < 3; n++) {
    const { status } = await gateway.call('/api/things/other', { cookie, headers: accept })
    t.equal(status, 200, 'one that got something else gives its place back')
  }
  await stream('/api/things/events', { headers: accept })
})

t.test('changes count for old streams: roles, maintenance, routes that are gone', async t => {
  const chat = { path: '/api/chat/*', upstream: 'backend', access: { roles: ['user'] } }
  const { gateway, routes, stream } = await open(t, {}, { routes: { routes: { chat } } })
  const ofBob = { cookie: await gateway.signIn('bob') }
  const take = async (more: object) => {
    const taken = { ...routes.routes, ...more }
    writeConfig(gateway.folder, 'routes.yaml', { ...routes, routes: taken })
    t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  }
  /** What the machine itself was late by is not the gateway's. */
  const ends = async (client: StreamClient, code: string, act: () => Promise<unknown>) => {
    const [from, stoodStillMs] = [gateway.log.length, standstill()]
    await act()
    const startedAt = performance.now()
    const { how, at } = await client.ended
    t.equal(how, 'whole')
    t.ok(at - startedAt <= promisedMs + stoodStillMs(), `within ${Math.round(at - startedAt)} ms`)
    await gateway.logged(line => line['msg'] === 'request' && line['code'] === code, from)
  }
  const close = async (closing: object) => await beginMaintenance(gateway.opsUrl, closing)
  const mine = await stream('/api/chat/events')
  const free = await stream('/api/open/events')

  const theirs = await stream('/api/chat/events', ofBob)
  const admins = { chat: { ...chat, access: { roles: ['admin'] } } }
  await ends(theirs, 'route.forbidden', async () => await take(admins))
  t.notOk(mine.isOver(), 'a role that may go on goes on')

  await take({ chat: undefined })
  await close({ methods: ['POST'] })
  const again = await stream('/api/things/events', ofBob)
  await ends(again, 'maintenance', async () => await close({ allowRoles: ['admin'] }))
  t.notOk(mine.isOver(), 'so it does in maintenance, and where its route is gone')

  await take({})
  await ends(mine, 'maintenance', async () => await close({ routes: ['chat'] }))
  t.notOk(free.isOver(), 'public routes are not bound')
})

const many = { connections: 1000 }

t.test('a stop tells all streams, spread over its time; a late one ends at once', async t => {
  const late: ServerResponse[] = []
  const slow = await testUpstream(t.after, (_request, response) => void late.push(response))
  const graceMs = 2000
  const { gateway, cookie, stream } = await open(t, many, {
    gateway: { drain: { grace: `${graceMs}ms` } },
    routes: {
      upstreams: { slow: { url: slow.url } },
      routes: { late: { path: '/api/late', upstream: 'slow' } }
    }
  })
  const ofEvents = Array<string>(40).fill('/api/things/events')
  const events = await Array.fromAsync(ofEvents, async path => await stream(path))
  const file = await stream('/api/things/file')
  t.match(await gateway.metrics(), /console_gateway_streams\{route="things"\} 41\n/)
  const opening = openStream(t.after, `${gateway.url}/api/late`, { cookie })
  await until('it is asked for', () => late.length > 0)

  const startedAt = performance.now()
  const stopped = gateway.stop({ noticeMs: 0 })
  await until('the first ones end', () => events.some(({ isOver }) => isOver()))
  late[0]?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  t.equal((await (await opening).ended).how, 'whole')
  t.ok(events.map(({ isOver }) => isOver()).includes(false), 'before the others')
  const ends = await Promise.all(events.map(async ({ ended }) => await ended))
  t.same([...new Set(ends.map(({ how }) => how))], ['whole'])
  const times = ends.map(({ at }) => at).toSorted((a, b) => a - b)
  const spreadMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
  t.ok(spreadMs >= 0.5 * graceMs, `spread over ${Math.round(spreadMs)} ms`)
  const steps = new Set(times.map(time => Math.round(time / 50))).size
  t.ok(steps >= 4, `in ${steps} steps`)
  const { how, at } = await file.ended
  t.equal(how, 'cut', 'a download gets all the time')
  t.ok(at - startedAt >= 0.9 * graceMs)
  await stopped
})

/** How many scripts a Redis ran: sessions are read by one. */
async function scriptsRun(port: number): Promise<number> {
  const stats = await redisCli(port, 'INFO', 'commandstats')
  const calls = [...stats.matchAll(/^cmdstat_(?:evalsha|eval)(?:_ro)?:calls=(\d+)/gm)]
  return calls.reduce((sum, [, count]) => sum + Number(count), 0)
}
const quietMs = 2200

/** As many as two users may have. */
const streams = 80

/** How many scripts Redis runs in a while for streams of so many sessions. */
async function asked(t: Test, sessions: number, ...rights: readonly string[]) {
  const { url, port } = await testRedis(t.after)
  await redisCli(port, 'ACL', 'SETUSER', 'default', ...rights)
  const redis = { url, commandTimeout: '20s' }
  const { gateway, stream } = await open(t, many, { redis })
  const cookies = await Array.fromAsync({ length: sessions }, async (_, n) => {
    return await gateway.signIn(n % 2 ? 'bob' : 'alice')
  })
  const all = await Array.fromAsync({ length: streams }, async (_, n) => {
    return await stream('/api/things/events', { cookie: cookies[n % sessions] })
  })
  const before = await scriptsRun(port)
  await new Promise(resolve => setTimeout(resolve, quietMs))
  const count = (await scriptsRun(port)) - before
  t.notOk(all.map(({ isOver }) => isOver()).includes(true), 'all go on')
  return count
}

t.test('sessions that are cached cost Redis nothing, however many streams they have', async t => {
  const sessions = 20
  const count = await asked(t, sessions)
  t.ok(count <= sessions, `${count} scripts, each session at most once`)
})

t.test('case R7: without news each session is asked for once in 5 s, not all at once', async t => {
  const count = await asked(t, streams, '-client|tracking')
  t.ok(count > 8 && count < 68, `${count} of ${streams} in ${quietMs} ms`)
})
