/** Access tokens of machines, of a real OpenID provider, in the place of keys for scripts. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testProvider } from '../support/oidc-provider.ts'
import { openStream, streamingBackend } from '../support/streams.ts'
import { until } from '../support/until.ts'

const audience = 'https://console.example/api'
const backend = await streamingBackend(t.teardown)
const provider = await testProvider(t.teardown)

const gatewayWith = async (after: (undo: () => unknown) => void, clientId = 'console') => {
  const sso = provider.config({
    clientId,
    audience,
    user: { roles: 'groups', roleMap: { importers: 'user' } }
  })
  const gateway = {
    identity: { source: 'x-user-source' },
    login: { sources: { 'users-file': { kind: 'users-file' }, sso } }
  }
  const access = { roles: ['user'] }
  const orders = { path: '/api/orders/*', keys: true, access, passHeaders: ['authorization'] }
  const exchange = { path: '/exchange', token: 'ok' }
  const upstreams = {
    shop: { url: backend.url, credential: { exchange } },
    sso: { url: backend.url, credential: { as: 'bearer', from: 'sso' } }
  }
  const shop = { upstream: 'shop', keys: true }
  const own = { upstream: 'sso', keys: true }
  const routes = { upstreams, routes: { orders, closed: {}, shop, own } }
  const files = { gateway, backend: backend.url, routes }
  return await testGateway(after, files, provider.environment)
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

t.test('a machine calls with a token of the right audience, and nothing else passes', async t => {
  const gateway = await gatewayWith(t.after)
  const token = await provider.machineToken(audience)
  const elsewhere = await provider.machineToken('https://other.example')
  const undo = provider.rotateKeys()
  const strangers = await provider.machineToken(audience)
  undo()
  const cookie = await gateway.signIn('bob')
  const [head = '', claims = '', signature = ''] = token.split('.')
  const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')
  for (const [sent, path, status, errorCode, withCookie] of [
    [token, '/api/orders/1', 200],
    [token, '/api/account/profile', 200],
    [token, '/api/closed', 403, 'route.keys'],
    [token, '/api/own', 403, 'route.credential'],
    [strangers, '/api/orders/1', 401, 'key.invalid'],
    [strangers, '/api/orders/1', 401, 'key.invalid', true],
    [`${none}.${claims}.`, '/api/orders/1', 401, 'key.invalid'],
    [`${head}.${claims}.${signature.slice(0, -4)}AAAA`, '/api/orders/1', 401, 'key.invalid'],
    [elsewhere, '/api/orders/1', 401, 'session.none'],
    [elsewhere, '/api/orders/1', 200, undefined, true],
    ['eyJhbGciOiJub25lIn0.e30.', '/api/orders/1', 401, 'session.none']
  ] as const) {
    const called = await gateway.call(path, {
      headers: bearer(sent),
      ...(withCookie === true && { cookie })
    })
    t.match([called.status, called.json.errorCode], [status, errorCode], `${path} ${errorCode}`)
  }
  await gateway.call('/api/orders/1', { headers: bearer(token) })
  const { headers } = backend.seen.at(-1) ?? {}
  t.match(headers, { 'x-user-id': 'importer', 'x-user-roles': 'user', 'x-user-source': 'sso' })
  t.equal(headers?.authorization, undefined)
  t.notMatch(JSON.stringify(gateway.log), signature)
})

t.test('an upstream that gives tokens of its users gives a machine one, once', async t => {
  const gateway = await gatewayWith(t.after)
  const headers = bearer(await provider.machineToken(audience))
  const before = backend.seen.length
  for (const round of [1, 2]) {
    t.match(await gateway.call('/api/shop', { headers }), { status: 200 }, `${round}`)
    t.equal(backend.seen.at(-1)?.headers.authorization, 'Bearer 1')
  }
  const asked = backend.seen.slice(before).filter(({ url }) => url === '/exchange')
  t.same(
    asked.map(({ body }) => String(body)),
    ['{"username":"importer"}']
  )
})

t.test('a token ends with its time, and for whom is blocked; its streams do too', async t => {
  const gateway = await gatewayWith(t.after)
  provider.tokenSeconds = 3
  const headers = bearer(await provider.machineToken(audience))
  provider.tokenSeconds = 3600
  const events = await openStream(t.after, `${gateway.url}/api/orders/events`, { headers })
  t.equal(events.status, 200)
  await events.ended
  t.match(events.text(), /tick/)

  await gateway.ops('/ops/api/users/block', { json: { name: 'importer' } })
  const another = bearer(await provider.machineToken(audience))
  const refused = await gateway.call('/api/orders/1', { headers: another })
  t.match(refused, { status: 403, json: { errorCode: 'login.blocked-by-operator' } })
})

t.test('while the provider is away a token cannot be checked: 503', async t => {
  const headers = bearer(await provider.machineToken(audience))
  // Of another client: it has read nothing yet.
  const gateway = await gatewayWith(t.after, 'another')
  provider.fault = 'broken'
  const { status, json } = await gateway.call('/api/orders/1', { headers })
  t.match([status, json.errorCode], [503, 'upstream.refused'])
  provider.fault = undefined
  await until('it can again', async () => {
    return (await gateway.call('/api/orders/1', { headers })).status === 200
  })
})
