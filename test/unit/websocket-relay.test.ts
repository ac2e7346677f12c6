/** Two WebSockets that are linked, without a gateway: the times that it has no patience for. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { Relay, type RelayEnd } from '../../src/proxy/websocket.ts'
import { until } from '../support/until.ts'
import { closed, webSocketUpstream } from '../support/websocket.ts'

/** Both ends of a new connection. */
async function pair(t: Test, options: { readonly autoPong?: boolean } = {}) {
  const server = await webSocketUpstream(t.after, {}, () => {})
  const accepted = server.next()
  const far = new WebSocket(server.url.replace('http', 'ws'), options).on('error', () => {})
  const [near] = await Promise.all([accepted, once(far, 'open')])
  t.after(() => far.terminate())
  return { near, far }
}

async function linked(t: Test, beatMs: number, options = {}) {
  const [client, upstream] = [await pair(t, options), await pair(t)]
  const ends: RelayEnd[] = []
  upstream.near.pause()
  const relay = new Relay(client.near, upstream.near, beatMs, end => ends.push(end))
  return { client: client.far, upstream: upstream.far, relay, ends }
}

t.test('a quiet connection is pinged on both sides, and lives on by its pongs', async t => {
  const { client, upstream, ends } = await linked(t, 500)
  const pings = { client: 0, upstream: 0 }
  client.on('ping', () => pings.client++)
  upstream.on('ping', () => pings.upstream++)
  // Longer than the time after which a silent side is gone.
  await until('pings', () => pings.client >= 6 && pings.upstream >= 6)
  t.same(ends, [])
})

t.test('a side of which nothing comes, not even a pong, is gone: 1001', async t => {
  const { client, upstream, ends } = await linked(t, 500, { autoPong: false })
  const told = closed(upstream)
  t.same(await closed(client), { code: 1001, reason: 'idle' })
  t.equal((await told).code, 1001)
  await until('it is over', () => ends.length === 1)
  t.match(ends, [{ by: 'gateway', closeCode: 1001, reason: 'idle' }])
})

t.test('a side that answers no close frame holds nobody', async t => {
  const { client, upstream, relay, ends } = await linked(t, 60_000)
  // It reads nothing from now on, so it gets no close frame.
  client.pause()
  const told = closed(upstream)
  relay.end(4401, 'session.revoked')
  t.equal((await told).code, 1001)
  await until('it is over', () => ends.length === 1)
  t.match(ends, [{ by: 'gateway', closeCode: 4401, reason: 'session.revoked' }])
})
