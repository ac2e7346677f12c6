/** Streams through the gateway: bound to their session, unbuffered, and whole or visibly cut. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { open as connect, request } from '../support/raw.ts'
import { openStream, type StreamClient, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { wireRoutes } from '../support/wire.ts'

const promisedMs = 1000

async function open(t: Test, upstream: object = {}) {
  const backend = await streamingBackend(t.after)
  const gateway = await testGateway(t.after, { routes: wireRoutes(backend.url, upstream) })
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
  return { backend, gateway, cookie, stream, endBySignOut, isLeftAlone }
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
  const others: StreamClient[] = []
  for (let n = 0; n < 4; n++) others.push(await stream('/api/open/events'))
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
