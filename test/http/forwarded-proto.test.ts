/** What a trusted proxy says of the scheme, in all its spellings; what others say counts nothing. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { signInToOps } from '../support/operator.ts'
import { testUpstream } from '../support/upstream.ts'

const proxy = '127.0.0.2'
const stranger = '127.0.0.1'
const source = 'users-file'

const backend = await testUpstream(t.after)
const gateway = await testGateway(t.after, {
  gateway: {
    server: { trustedProxies: [proxy] },
    ops: { trustedProxies: [stranger], role: 'admin', sources: [source] }
  },
  routes: {
    upstreams: { b: { url: backend.url } },
    routes: { things: { path: '/api/things', access: 'public', methods: ['POST'], upstream: 'b' } }
  }
})
const { host } = new URL(gateway.url)

async function post(path: string, from: string, headers: Record<string, string>, body = '{}') {
  const asked = request(gateway.url + path, {
    method: 'POST',
    localAddress: from,
    agent: false,
    headers: { 'content-type': 'application/json', ...headers }
  }).end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response
}

const https = ['https', 'HTTPS', 'Https', 'wss', 'WSS', ' wss', 'http, HTTPS', 'https,wss']
const http = ['http', 'HTTP', 'ws', 'WS', 'https, ws', 'ftp', 'httpss', 'https,']

for (const [told, values] of Object.entries({ https, http })) {
  t.test(`case 19: back-ends are told ${told}, and origins go by it`, async t => {
    for (const value of values) {
      const forwarded = { 'x-forwarded-proto': value }
      t.equal((await post('/api/things', proxy, forwarded)).statusCode, 200, value)
      t.equal(backend.seen.at(-1)?.headers['x-forwarded-proto'], told, value)

      const origin = { ...forwarded, origin: `http://${host}` }
      const { statusCode } = await post('/api/things', proxy, origin)
      t.equal(statusCode, told === 'http' ? 200 : 403, `a page of http, ${value}`)
    }
  })
}

t.test('case 19: nobody else may say it', async t => {
  for (const value of [...https, ...http]) {
    t.equal((await post('/api/things', stranger, { 'x-forwarded-proto': value })).statusCode, 200)
    t.equal(backend.seen.at(-1)?.headers['x-forwarded-proto'], 'http', value)
  }
})

t.test('case 19: the operators’ listener lets nobody sign in but over https', async t => {
  const { host: opsHost } = new URL(gateway.opsUrl)
  for (const [values, status] of [
    [https, 303],
    [http, 403]
  ] as const) {
    for (const value of values) {
      const headers = { 'origin': `https://${opsHost}`, 'x-forwarded-proto': value }
      const { status: actual } = await signInToOps(gateway.opsUrl, 'alice', { headers })
      t.equal(actual, status, value)
    }
  }
})

t.end()
