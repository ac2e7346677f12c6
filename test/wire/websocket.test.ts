/** WebSocket through the gateway, by real sockets. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { closed, dial, message, refusal, webSocketUpstream } from '../support/websocket.ts'

const routes = (url: string, websocket: object = {}, more: object = {}) => ({
  upstreams: { b: { url } },
  routes: {
    chat: { path: '/api/chat', upstream: 'b', rewrite: '/chat', websocket },
    admin: { path: '/api/admin', upstream: 'b', access: { roles: ['admin'] }, websocket },
    open: { path: '/api/open', upstream: 'b', access: 'public', websocket },
    plain: { path: '/api/plain', upstream: 'b' }
  },
  ...more
})

t.test('a signed-in user’s messages pass both ways, and so does the close', async t => {
  const backend = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  const cookie = await gateway.signIn()
  const client = await dial(`${gateway.url}/api/chat?room=1`, { cookie, protocols: ['a', 'b'] })
  t.equal(client.protocol, 'a')
  const [asked] = backend.requests
  t.equal(asked?.url, '/chat?room=1')
  t.equal(asked?.headers['x-user-name'], 'alice')
  t.equal(asked?.headers.cookie, undefined, 'the session’s cookie stays here')
  client.send('hello')
  t.equal(await message(client), 'hello')
  client.close(4000, 'bye')
  t.same(await closed(client), { code: 4000, reason: 'bye' })
  await until('the upstream’s is closed too', () => backend.open().length === 0)
  t.match(await gateway.logged(line => line['event'] === 'websocket.closed'), {
    route: 'chat',
    by: 'client',
    toUpstream: 1,
    toClient: 1,
    user: 'alice'
  })
  t.match(await gateway.logged(line => line['route'] === 'chat' && line['status'] === 101), {
    user: 'alice'
  })
})

t.test('refusals are ordinary responses', async t => {
  const backend = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  const none = await refusal(`${gateway.url}/api/chat`)
  t.match(none, { status: 401, headers: { connection: 'close' }, body: /session.none/ })
  const cookie = await gateway.signIn('bob')
  t.match(await refusal(`${gateway.url}/api/admin`, { cookie }), { status: 403, body: /forbidden/ })
  t.match(await refusal(`${gateway.url}/api/plain`, { cookie }), { status: 400 })
  t.match(await refusal(`${gateway.url}/api/none`, { cookie }), { status: 400 })
  const headers = { origin: 'https://evil.example' }
  t.match(await refusal(`${gateway.url}/api/chat`, { cookie, headers }), {
    status: 403,
    body: /origin.refused/
  })
  t.equal(backend.requests.length, 0)
  const own = await dial(`${gateway.url}/api/chat`, { cookie, headers: { origin: gateway.url } })
  t.equal((await gateway.call('/api/chat', { cookie })).status, 200, 'beside ordinary GETs')
  own.close()
  await closed(own)
})

t.test('4401 within 1 s of a sign-out', async t => {
  const backend = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  const cookie = await gateway.signIn()
  const client = await dial(`${gateway.url}/api/chat`, { cookie })
  const upstream = backend.open()[0]
  const told = closed(client)
  const toldUpstream = upstream && closed(upstream)
  await gateway.call('/api/account/logout', { method: 'POST', cookie })
  const startedAt = performance.now()
  t.same(await told, { code: 4401, reason: 'session.revoked' })
  t.comment(`${performance.now() - startedAt} ms`)
  t.match(await toldUpstream, { code: 1001 })
})
