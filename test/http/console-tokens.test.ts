/** The console's own token, here the real one of another user: in no place does it reach a back-end. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, type Seen, testUpstream } from '../support/upstream.ts'
import { dial, webSocketUpstream } from '../support/websocket.ts'

const stolen = 'real-token-of-bob'
const names = {
  tokenHeaders: ['authorization', 'x-access-token', 'x-auth-token', 'sec-websocket-protocol'],
  tokenCookies: ['TOKEN__', 'Admin-Token'],
  tokenQuery: ['token', 'X-Access-Token']
}
const headers = {
  'authorization': `Bearer ${stolen}`,
  'X-Access-Token': stolen,
  'x-auth-token': stolen
}
const cookies = `TOKEN__=${stolen}; Admin-Token=${stolen}`
const query = `token=${stolen}&page=1&x-access-token=${stolen}&Token[]=${stolen}&to%6ben=${stolen}`

const source = { format: 'form', user: { id: 'user.id' }, token: 'token' }

const parts = { more: { upstream: 'b', rewrite: '/more', into: 'more' } }

/** @param upstream settings of the back-end, such as the form of its credential */
async function setUp(t: Test, upstream: object, tokenQuery = names.tokenQuery) {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const username = new URLSearchParams(seen.body.toString()).get('username')
    const token = `real-token-of-${username}`
    json(200, { user: { id: username }, token, list: [] })(request, response, seen)
  })
  const socketUpstream = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { ...names, tokenQuery, inertToken: 'inert' } },
    backend: { url: backend.url, ...upstream },
    source,
    routes: {
      upstreams: { ws: { url: socketUpstream.url, ...upstream } },
      routes: {
        plain: { methods: ['GET', 'POST'] },
        passing: { passCookies: ['theme'] },
        mapped: { query: { rename: { page: 'p' } } },
        parted: { upstream: 'b', parts },
        open: { access: 'public' },
        chat: { upstream: 'ws', websocket: {} }
      }
    }
  })
  return { gateway, backend, socketUpstream }
}

/** Everything of a request that a back-end may read a token from. */
const textOf = ({ url, rawHeaders, body }: Seen) =>
  `${url} ${rawHeaders.join(' ')} ${body.toString()}`

const forms = {
  'bearer': 'Bearer real-token-of-alice',
  'header:x-access-token': 'real-token-of-alice'
}
for (const [credential, value] of Object.entries(forms)) {
  const name = credential === 'bearer' ? 'authorization' : 'x-access-token'

  t.test(`with ${credential}, routes and WebSockets send the session’s token alone`, async t => {
    const { gateway, backend, socketUpstream } = await setUp(t, { credential })
    const cookie = `${await gateway.signIn('alice')}; ${cookies}; theme=dark`
    for (const path of ['plain', 'passing', 'mapped', 'parted']) {
      const from = backend.seen.length
      t.equal(await gateway.status(`/api/${path}?${query}`, { cookie, headers }), 200)
      for (const seen of backend.seen.slice(from)) {
        t.notMatch(textOf(seen), stolen, path)
        t.match(seen.headers, { 'x-user-id': 'alice', [name]: value }, path)
        const sent = path === 'mapped' ? '?p=1' : '?page=1'
        t.equal(seen.url, seen.url.startsWith('/more') ? '/more' : `/api/${path}${sent}`)
      }
    }
    t.equal(backend.seen.length, 6, 'sign-in, four routes, one of them with a part')
    await gateway.call(`/api/plain?${query}`, { method: 'POST', cookie, headers, json: {} })
    t.notMatch(textOf(backend.seen.at(-1) as Seen), stolen)
    await gateway.call(`/api/open?${query}`, { cookie, headers })
    t.match(backend.seen.at(-1)?.url, '/api/open?page=1')
    t.notMatch(textOf(backend.seen.at(-1) as Seen), 'real-token', 'nobody’s on a public route')

    const protocols = [stolen, 'chat']
    const client = await dial(`${gateway.url}/api/chat?${query}`, { cookie, headers, protocols })
    t.equal(client.protocol, stolen, 'what the console offered is agreed with it alone')
    const [asked] = socketUpstream.requests
    t.equal(asked?.url, '/api/chat?page=1')
    t.notMatch(asked?.rawHeaders.join(' '), stolen)
    t.match(asked?.headers, { 'x-user-id': 'alice', [name]: value })
    t.equal(asked?.headers['sec-websocket-protocol'], undefined)
    client.close()
  })
}

const queries: Readonly<Record<string, string>> = {
  // Without the token a query passes byte for byte.
  '?a=%41&&b=1;c': '?a=%41&&b=1;c',
  '?tokens=1&my-token=2&a[token]=1&a=token': '?tokens=1&my-token=2&a[token]=1&a=token',
  '?token=R': '',
  '?token': '',
  '?a=%41&token=R&b=+1&token=S': '?a=%41&b=+1',
  // A semicolon separates for some.
  '?a=1;token=R&b=2': '?a=1&b=2'
}
const spellings = [
  ...['TOKEN', 'to%6ben', '%u0074oken', '+token', 'token%20', 'token%00x', 'token%E2%80%8B'],
  ...['tok%C2%ADen', 'token%C2%80', 'tok%C3%A9en', 'token[]', 'token%5B0%5D', 'token[a]'],
  ...['x-access.token', 'x-access_token', 'x-access%20token']
]

t.test('the token leaves a query in every spelling that a lenient back-end takes', async t => {
  const { gateway, backend } = await setUp(t, {}, ['token', 'X-Access.Token'])
  const leaves = async (given: string, passed: string) => {
    const asked = request(`GET /api/open${given}`)
    t.equal((await raw(gateway.url, asked)).status, 200)
    t.equal(backend.seen.at(-1)?.url, `/api/open${passed}`, given)
  }
  for (const [given, passed] of Object.entries(queries)) await leaves(given, passed)
  for (const name of spellings) await leaves(`?a=1&${name}=R&b=2`, '?a=1&b=2')
})

t.test('a back-end that takes its token as a subprotocol gets the session’s', async t => {
  const credential = 'header:sec-websocket-protocol'
  const { gateway, socketUpstream } = await setUp(t, { credential })
  const cookie = await gateway.signIn('alice')
  const client = await dial(`${gateway.url}/api/chat`, { cookie, protocols: ['inert'] })
  t.match(socketUpstream.requests[0]?.headers, { 'sec-websocket-protocol': 'real-token-of-alice' })
  t.equal(client.protocol, 'inert', 'the browser never sees the real one')
  client.close()
})

t.test('sign-in at the back-end carries no token of the console', async t => {
  const { gateway, backend } = await setUp(t, { credential: 'bearer' })
  const cookie = `${await gateway.signIn('alice')}; ${cookies}`
  const typed = { username: 'alice', password: 'pw' }
  const answer = await gateway.call(`/api/auth/admin/login?${query}`, {
    cookie,
    headers,
    json: { ...typed, 'code': '7', 'token': stolen, 'X-ACCESS-TOKEN': stolen }
  })
  t.match(answer.json, { data: { authToken: 'inert' } })
  t.notMatch(answer.text, 'real-token')
  const seen = backend.seen.at(-1) as Seen
  t.notMatch(textOf(seen), stolen)
  t.equal(seen.body.toString(), 'code=7&username=alice&password=pw')
})

t.test('calls that renew a token carry none of the console', async t => {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const token = seen.url === '/renew' ? 'renewed' : 'expired'
    const expiresIn = token === 'renewed' ? 3600 : 0
    json(200, { user: { id: 'alice' }, token, expiresIn })(request, response, seen)
  })
  const expires = { path: 'expiresIn' }
  const refresh = { path: '/renew', body: {}, token: 'token' }
  const gateway = await testGateway(t.after, {
    gateway: { envelope: names },
    backend: { url: backend.url, credential: 'bearer' },
    source: { ...source, expires, refresh },
    routes: { routes: { plain: {} } }
  })
  const cookie = `${await gateway.signIn('alice')}; ${cookies}`
  t.equal(await gateway.status(`/api/plain?${query}`, { cookie, headers }), 200)
  t.equal(backend.seen.map(({ url }) => url).join(), '/login,/renew,/api/plain?page=1')
  for (const seen of backend.seen) t.notMatch(textOf(seen), stolen)
  t.equal(backend.seen[2]?.headers['authorization'], 'Bearer renewed')
})
