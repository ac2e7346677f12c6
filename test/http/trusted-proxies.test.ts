/** What a peer may say of a request, and what only a load balancer that config names. */
import t from 'tap'
import { type Call, callOnce } from '../support/call.ts'
import { testGateway } from '../support/gateway.ts'
import { signInToOps } from '../support/operator.ts'
import { testUpstream } from '../support/upstream.ts'

const balancer = '127.0.0.2'
const stranger = '127.0.0.1'
const source = 'users-file'

const backend = await testUpstream(t.teardown)
const route = { access: 'public', methods: ['GET', 'POST'] }
const gateway = await testGateway(t.teardown, {
  gateway: {
    server: {
      trustedProxies: [balancer],
      hosts: ['console.example.com:8443', '[::1]', '127.0.0.1']
    },
    ops: { trustedProxies: [stranger], role: 'admin', sources: [source] }
  },
  backend: backend.url,
  routes: { routes: { things: route } }
})
const { host, port } = new URL(gateway.url)

const ask = async (localAddress: string, headers: Record<string, string>, more: Call = {}) =>
  await callOnce(`${gateway.url}/api/things`, { localAddress, headers, ...more })
const seen = () => backend.seen.at(-1)?.headers

const https = ['https', 'HTTPS', 'Https', 'wss', 'WSS', ' wss', 'http, HTTPS', 'https,wss']
const http = ['http', 'HTTP', 'ws', 'WS', 'https, ws', 'ftp', 'httpss', 'https,', 'javascript']

for (const [told, values] of Object.entries({ https, http })) {
  t.test(`case 19: back-ends are told ${told}, and origins go by it`, async t => {
    for (const value of values) {
      const forwarded = { 'x-forwarded-proto': value }
      t.equal((await ask(balancer, forwarded)).status, 200, value)
      t.equal(seen()?.['x-forwarded-proto'], told, value)
      t.equal((await ask(stranger, forwarded)).status, 200)
      t.equal(seen()?.['x-forwarded-proto'], 'http', `${value}, which nobody else may say`)

      for (const field of ['origin', 'referer']) {
        const page = { ...forwarded, [field]: `http://${host}` }
        const { status } = await ask(balancer, page, { method: 'POST' })
        t.equal(status, told === 'http' ? 200 : 403, `a page of http, ${value}`)
      }
    }
  })
}

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

t.test('only the load balancers of config are believed, and only in what they add', async t => {
  const own = /^[0-9a-f-]{36}$/
  for (const [from, forwardedFor, believed, id] of [
    [balancer, '6.6.6.6, 203.0.113.9', '203.0.113.9', /^chosen-outside$/],
    [balancer, '<script>, not an address, 203.0.113.9', '203.0.113.9', /^chosen-outside$/],
    [stranger, '6.6.6.6', stranger, own],
    ['127.0.0.3', '6.6.6.6', '127.0.0.3', own]
  ] as const) {
    const { headers } = await ask(from, {
      'x-forwarded-for': forwardedFor,
      'x-forwarded-host': 'evil.example',
      'x-request-id': 'chosen-outside'
    })
    const told = { 'x-forwarded-for': believed, 'x-forwarded-host': host, 'x-request-id': id }
    t.match(seen(), told, forwardedFor)
    t.equal(seen()?.['x-request-id'], headers['x-request-id'])
  }
})

t.test('a load balancer is believed by its address or its block, in any spelling', async t => {
  const trustedProxies = [stranger, '192.0.2.7', '10.0.0.0/8', '2001:db8:1::/48', '::1']
  const { call } = await testGateway(t.after, {
    gateway: { server: { trustedProxies } },
    backend: backend.url,
    routes: { routes: { few: route } },
    limits: { limits: { few: { by: 'address', max: 1, window: '1h', routes: ['few'] } } }
  })
  const told = async (forwardedFor: string) => {
    const { status } = await call('/api/few', { headers: { 'x-forwarded-for': forwardedFor } })
    return status === 200 ? seen()?.['x-forwarded-for'] : status
  }
  const believed =
    '192.0.2.7 10.255.0.1 ::ffff:10.1.2.3 ::ffff:0a01:0203 2001:db8:1:2::3 2001:0DB8:0001::1 ::1 ' +
    '0:0:0:0:0:0:0:1 ::1%lo'
  for (const [index, proxy] of believed.split(' ').entries()) {
    t.equal(await told(`203.0.113.${index}, ${proxy}`), `203.0.113.${index}`, proxy)
  }
  const addresses = ['192.0.2.8', '11.0.0.1', '::ffff:11.1.2.3', '2001:db8:2::1', '::2']
  for (const other of addresses) t.equal(await told(`203.0.113.9, ${other}`), other)
  const texts = ['unknown', '10.0.0.1%lo', '10.0.0', '_hidden', 'localhost', '999.0.0.1:80']
  t.equal(await told('unknown'), stranger)
  for (const text of texts) t.equal(await told(`203.0.113.9, ${text}`), 429, `${text} is its proxy`)
  for (const [written, address] of [
    ['203.0.113.20:4711', '203.0.113.20'],
    ['[2001:db8:9::1]:4711', '2001:db8:9::1'],
    ['[2001:db8:8::1]', '2001:db8:8::1']
  ] as const) {
    t.equal(await told(written), address)
    t.equal(await told(address), 429, 'both are one caller')
  }
  t.equal(await told('2001:db8:9:0:7::7'), 429, 'so is a /64')
  t.equal(await told('2001:db8:9:1::1'), '2001:db8:9:1::1', 'but not the next one')
  t.equal(await told('11.1.2.3'), 429, 'IPv4 in IPv6 dress counts as IPv4')
})

t.test('the port of X-Forwarded-Host is the listener’s, one of config, or none', async t => {
  for (const [called, forwarded] of [
    ['console.example.com', 'console.example.com'],
    [`console.example.com:${port}`, `console.example.com:${port}`],
    ['console.example.com:8443', 'console.example.com:8443'],
    ['console.example.com:31337', 'console.example.com'],
    ['console.example.com:0', 'console.example.com'],
    ['[::1]:31337', '[::1]'],
    ['[::1]', '[::1]']
  ] as const) {
    for (const from of [balancer, stranger]) {
      t.equal((await ask(from, { host: called })).status, 200)
      t.equal(seen()?.['x-forwarded-host'], forwarded, `${called} from ${from}`)
    }
  }
  const before = backend.begun()
  t.equal((await ask(balancer, { host: 'other.test' })).status, 400, 'one that is not listed')
  t.equal(backend.begun(), before)
})
