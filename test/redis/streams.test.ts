/** Event streams and downloads at two replicas: what ends a session at one ends its streams at the other. */
import t, { type Test } from 'tap'
import { testGateway, writeConfig } from '../support/gateway.ts'
import { lookAgain } from '../support/look-again.ts'
import { standstill } from '../support/machine.ts'
import { testRedis } from '../support/redis.ts'
import { openStream, type StreamClient, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { closed, dial, message, webSocketUpstream } from '../support/websocket.ts'
import { wireRoutes } from '../support/wire.ts'

const promisedMs = 1000

async function openReplicas(t: Test, session: object = {}) {
  const redis = await testRedis(t.after)
  const backend = await streamingBackend(t.after)
  const kept = { path: '/api/kept/*', upstream: 'backend', touch: 'always' }
  const routes = wireRoutes(backend.url, {}, { kept })
  const files = { gateway: { session }, redis: { url: redis.url, commandTimeout: '20s' }, routes }
  const start = async () => {
    const replica = await testGateway(t.after, files)
    await replica.ready()
    return replica
  }
  const [here, there] = [await start(), await start()]
  /** Streams of a new session at `here`, each flowing. */
  const open = async (paths: readonly string[], username = 'alice') => {
    const cookie = await here.signIn(username)
    const streams = await Promise.all(
      paths.map(async path => await openStream(t.after, here.url + path, { cookie }))
    )
    for (const { status } of streams) if (status !== 200) throw new Error(`status ${status}`)
    await until('all flow', () => streams.every(({ bytes }) => bytes() > 0))
    return { cookie, streams }
  }
  return { redis, here, there, routes, open }
}

/** That all end within the bound; what the machine itself was late by is not the gateway's. */
async function endWithin(
  t: Test,
  boundMs: number,
  streams: readonly StreamClient[],
  act: () => Promise<unknown>
): Promise<void> {
  const stoodStillMs = standstill()
  await act()
  const startedAt = performance.now()
  await until('all end', () => streams.every(({ isOver }) => isOver()), 20_000)
  const ends = await Promise.all(streams.map(async ({ ended }) => await ended))
  const slowestMs = Math.max(...ends.map(({ at }) => at - startedAt))
  t.ok(slowestMs <= boundMs + stoodStillMs(), `within ${Math.round(slowestMs)} ms`)
  t.comment(`measured ${Math.round(slowestMs)} ms`)
}

const pair = ['/api/things/events', '/api/things/file']
const howOf = async (streams: readonly StreamClient[]) =>
  await Promise.all(streams.map(async ({ ended }) => (await ended).how))

t.test('sign-out and revocation at one replica end streams at the other within 1 s', async t => {
  const { there, open } = await openReplicas(t)
  const other = await open(pair, 'bob')

  const signedOut = await open(pair)
  await endWithin(t, promisedMs, signedOut.streams, async () => {
    const { cookie } = signedOut
    const { status } = await there.call('/api/account/logout', { method: 'POST', cookie })
    t.equal(status, 200)
  })
  t.same(await howOf(signedOut.streams), ['whole', 'cut'])

  const revoked = await open(pair)
  await endWithin(t, promisedMs, revoked.streams, async () => {
    t.match(await there.opsJson('sessions/close', { user: '1' }), { closed: 1 })
  })
  t.same(await howOf(revoked.streams), ['whole', 'cut'])
  t.notOk(
    other.streams.some(({ isOver }) => isOver()),
    'another user’s go on'
  )
})

t.test('expiry ends streams within 1 s; only `touch: always` keeps a session alive', async t => {
  const idleMs = 1500
  const { here, open } = await openReplicas(t, { idle: `${idleMs}ms`, absolute: '6s' })
  const look = async () => {
    const startedAt = performance.now()
    const idle = await open(pair)
    const kept = await open(['/api/kept/events', '/api/kept/file'])
    // No session of these was opened later.
    const openedAt = performance.now()
    await until('the idle ones end', () => idle.streams.every(({ isOver }) => isOver()), 20_000)
    const isEarly = performance.now() - startedAt < idleMs
    const { cookie } = idle
    const { errorCode } = (await here.call('/api/things/x', { cookie })).json
    const goOn = !kept.streams.some(({ isOver }) => isOver())
    return { startedAt, openedAt, idle, kept, isEarly, errorCode, goOn }
  }
  // Who stands still for as long as a session may be idle uses none meanwhile.
  const seen = await lookAgain(look, ({ goOn, errorCode }) => goOn && errorCode === 'session.idle')
  const { startedAt, openedAt, idle, kept } = seen
  t.notOk(seen.isEarly, 'not before the idle time')
  t.equal(seen.errorCode, 'session.idle')
  t.ok(seen.goOn, 'streams that touch go on')
  await until('the absolute end', () => performance.now() - openedAt >= 6000)
  await endWithin(t, promisedMs, kept.streams, async () => {})
  t.ok(performance.now() - startedAt >= 6000)
  t.same(await howOf([...idle.streams, ...kept.streams]), ['whole', 'cut', 'whole', 'cut'])
})

t.test('while Redis is away streams and WebSockets go on; they end soon after it', async t => {
  const chat = await webSocketUpstream(t.after)
  const { redis, here, routes, open } = await openReplicas(t)
  const withChat = {
    upstreams: { ...routes.upstreams, chat: { url: chat.url } },
    routes: { ...routes.routes, chat: { path: '/api/chat', upstream: 'chat', websocket: {} } }
  }
  writeConfig(here.folder, 'routes.yaml', withChat)
  t.match(await here.reload('operator'), { outcome: 'reloaded' })
  const { cookie, streams } = await open(pair)
  const client = await dial(`${here.url}/api/chat`, { cookie })
  const statusOf = async () => await here.status('/api/things/x', { cookie })
  await redis.kill()
  await until('requests notice', async () => (await statusOf()) === 503)
  const before = streams.map(({ bytes }) => bytes())
  await until('all go on', () => streams.every(({ bytes }, n) => bytes() > (before[n] ?? 0)))
  client.send('still here')
  t.equal(await message(client), 'still here')
  const ended = closed(client)
  // It forgot all sessions.
  await redis.start()
  await endWithin(t, 2 * promisedMs, streams, async () => {
    await until('Redis is back', async () => (await statusOf()) === 401)
  })
  t.same(await howOf(streams), ['whole', 'cut'])
  t.match(await ended, { code: 4401 })
})
