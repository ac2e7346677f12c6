/** Live streams end with their role and route, at a stop by and by, and ask little of Redis. */
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { beginMaintenance } from '../support/ops.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { openStream, type StreamClient, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const promisedMs = 1000
const backend = await streamingBackend(t.teardown)
const upstreams = { b: { url: backend.url, connections: 1000 } }
const chat = { path: '/api/chat/*', upstream: 'b', access: { roles: ['user'] } }
const bell = { path: '/api/bell/*', upstream: 'b' }
const news = { path: '/api/news/*', upstream: 'b', access: 'public' }
const routes = { chat, bell, news }

async function stream(url: string, path: string, cookie?: string): Promise<StreamClient> {
  const client = await openStream(t.after, `${url}${path}`, { cookie })
  if (client.status !== 200) throw new Error(`${path}: ${client.status}`)
  await until(`${path} flows`, () => client.bytes() > 0)
  return client
}

t.test('changes count for old streams: roles, maintenance, routes that are gone', async t => {
  const gateway = await testGateway(t.after, { routes: { upstreams, routes } })
  const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
  const open = async (path: string, cookie?: string) => await stream(gateway.url, path, cookie)
  const take = async (taken: object) => {
    const text = stringify({ upstreams, routes: taken })
    writeFileSync(join(gateway.folder, 'routes.yaml'), text)
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
  const mine = await open('/api/chat/events', alice)
  const free = await open('/api/news/events')

  const admins = { ...routes, chat: { ...chat, access: { roles: ['admin'] } } }
  const theirs = await open('/api/chat/events', bob)
  await ends(theirs, 'route.forbidden', async () => await take(admins))
  t.notOk(mine.isOver(), 'a role that may go on goes on')

  await take({ bell, news })
  await close({ methods: ['POST'] })
  const again = await open('/api/bell/events', bob)
  await ends(again, 'maintenance', async () => await close({ allowRoles: ['admin'] }))
  t.notOk(mine.isOver(), 'so it does in maintenance, and where its route is gone')

  await take(routes)
  await ends(mine, 'maintenance', async () => await close({ routes: ['chat'] }))
  t.notOk(free.isOver(), 'public routes are not bound')
})

t.test('a stop tells all streams, spread over its time; a late one ends at once', async t => {
  const late: ServerResponse[] = []
  const slow = await testUpstream(t.after, (_request, response) => void late.push(response))
  const graceMs = 2000
  const gateway = await testGateway(t.after, {
    gateway: { drain: { grace: `${graceMs}ms` } },
    routes: {
      upstreams: { ...upstreams, slow: { url: slow.url } },
      routes: { ...routes, late: { path: '/api/late', upstream: 'slow' } }
    }
  })
  const cookie = await gateway.signIn()
  const open = async (path: string) => await stream(gateway.url, path, cookie)
  const events: StreamClient[] = []
  for (let n = 0; n < 40; n++) events.push(await open('/api/bell/events'))
  const file = await open('/api/bell/file')
  t.match(await gateway.metrics(), /console_gateway_streams\{route="bell"\} 41\n/)
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
  const gateway = await testGateway(t.after, {
    redis: { url, commandTimeout: '20s' },
    routes: { upstreams, routes }
  })
  await gateway.ready()
  const cookies: string[] = []
  for (let n = 0; n < sessions; n++) cookies.push(await gateway.signIn(n % 2 ? 'bob' : 'alice'))
  const all: StreamClient[] = []
  for (let n = 0; n < streams; n++) {
    all.push(await stream(gateway.url, '/api/bell/events', cookies[n % sessions]))
  }
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
