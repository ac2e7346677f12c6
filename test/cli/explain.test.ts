/** `explain` of requests: it says what a running gateway then does. */
import { request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Explanation } from '../../src/cli/explanation.ts'
import { run } from '../support/command.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

interface Case {
  readonly asks: string
  readonly as?: 'alice' | 'bob'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const page = { 'sec-fetch-site': 'same-origin' }
const signIn = (word: string) => JSON.stringify({ username: 'alice', password: word })

/** What a running gateway decides, and whom each of these asks. */
const cases: readonly Case[] = [
  { asks: 'GET /x/api/orders' },
  { asks: 'GET /x/api/orders', as: 'bob' },
  { asks: 'GET /x/api/orders?page=2&q=%20a', as: 'alice' },
  { asks: 'HEAD /x/api/orders', as: 'alice' },
  { asks: 'POST /x/api/orders', as: 'alice', body: '{"a":1}' },
  {
    asks: 'POST /x/api/orders',
    as: 'alice',
    headers: { 'sec-fetch-site': 'cross-site', 'origin': 'https://evil.example' },
    body: '{}'
  },
  {
    asks: 'POST /x/api/orders',
    as: 'alice',
    headers: { origin: 'https://friend.example' },
    body: '{}'
  },
  { asks: 'POST /x/api/orders', as: 'alice', body: 'x'.repeat(2048) },
  { asks: 'DELETE /x/api/orders', as: 'alice' },
  { asks: 'GET /x/api/order', as: 'alice' },
  { asks: 'GET /api/orders', as: 'alice' },
  { asks: 'GET /x/api/api/orders', as: 'alice' },
  { asks: 'GET /x/api/files/a/b%20c?d=e' },
  { asks: 'GET /x/api/files/deep/er', as: 'bob' },
  { asks: 'GET /x/api/dateien/a' },
  { asks: 'GET /x/api/files/../orders', as: 'alice' },
  { asks: 'GET /x/api//orders', as: 'alice' },
  { asks: 'GET /x/api/files/%2e%2e/a' },
  { asks: 'GET /x/api/files/%ff' },
  { asks: 'GET /x/api/files/a;b' },
  { asks: 'GET /x/API/orders', as: 'alice' },
  { asks: `GET /x/api/files/${'a'.repeat(9000)}` },
  { asks: 'GET /x/api/files/a', headers: { host: 'evil.example' } },
  { asks: 'GET /x/api/files/a', headers: { upgrade: 'websocket', connection: 'upgrade' } },
  { asks: 'GET /x/api/account/profile' },
  { asks: 'GET /x/api/currentUser', as: 'bob' },
  { asks: 'GET /x/api/session', as: 'bob' },
  { asks: 'GET /x/api/session' },
  { asks: 'POST /x/api/session/extend', as: 'bob' },
  { asks: 'POST /x/api/auth/admin/login', body: signIn(password) },
  { asks: 'POST /x/api/auth/admin/login', body: '{"username":1}' },
  { asks: 'POST /x/api/auth/admin/login', body: signIn('x'.repeat(5000)) },
  { asks: 'GET /x/api/auth/admin/login' },
  { asks: 'GET /x/api/closed', as: 'bob' },
  { asks: 'GET /x/api/closed', as: 'alice' },
  { asks: 'GET /x/api/together', as: 'bob' },
  { asks: 'GET /x/api/rare', as: 'alice' },
  { asks: 'GET /x/api/rare', as: 'bob' },
  { asks: 'OPTIONS /x/api/orders', as: 'alice' },
  {
    asks: 'OPTIONS /x/api/orders',
    headers: { 'origin': 'https://friend.example', 'access-control-request-method': 'POST' }
  },
  { asks: 'POST /x/api/account/logout', as: 'bob' }
]

const files = (upstream: string) => ({
  gateway: {
    server: { hosts: ['console.example'], mount: '/x', origins: ['https://friend.example'] }
  },
  routes: {
    upstreams: { backend: { url: `${upstream}/base` } },
    aliases: { '/api/currentUser': '/api/account/profile', '/api/dateien/*': '/api/files/*' },
    routes: {
      orders: {
        path: '/api/orders',
        methods: ['GET', 'POST'],
        access: { roles: ['admin'] },
        upstream: 'backend',
        rewrite: '/v2/orders',
        maxBody: '1KiB',
        timeout: '7s'
      },
      files: { path: '/api/files/*', access: 'public', upstream: 'backend', rewrite: '/store/*' },
      deep: { path: '/api/files/deep/*', upstream: 'backend' },
      closed: { path: '/api/closed', upstream: 'backend' },
      rare: { path: '/api/rare', upstream: 'backend' },
      together: {
        path: '/api/together',
        parts: { a: { upstream: 'backend', rewrite: '/a', into: 'a' } }
      }
    },
    maintenance: { routes: ['closed'], allowRoles: ['admin'] }
  },
  limits: {
    limits: {
      rare: { by: 'user', max: 2, window: '1h', routes: ['rare'] },
      guess: { by: 'address', max: 100, window: '1m', routes: ['login'] }
    }
  }
})

interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly cookie: string
}

/** As it stands, where fetch would repair the path and choose the host. */
function call(
  url: string,
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body?: string
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const bodyFields =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
    httpRequest(
      {
        hostname,
        port,
        method,
        path: target,
        agent: false,
        headers: { host: 'console.example', ...bodyFields, ...headers }
      },
      answer => {
        text(answer).then(all => {
          const { errorCode } = (all.startsWith('{') ? JSON.parse(all) : {}) as {
            errorCode?: string
          }
          resolve({
            status: answer.statusCode ?? 0,
            code: errorCode,
            cookie:
              answer.headers['set-cookie']
                ?.map(cookie => cookie.split(';', 1)[0] ?? '')
                .find(cookie => cookie.startsWith('console_sid=')) ?? ''
          })
        }, reject)
      }
    )
      .once('error', reject)
      .end(body)
  })
}

async function explained(folder: string, { asks, as, headers, body }: Case): Promise<Explanation> {
  const { out, err } = await run([
    'explain',
    ...asks.split(' '),
    '--json',
    '--config',
    folder,
    ...(as === undefined ? [] : ['--as', as]),
    ...Object.entries(headers ?? {}).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    ...(body === undefined ? [] : ['--data', body])
  ])
  if (out === '') throw new Error(err)
  return JSON.parse(out) as Explanation
}

t.test('explain says of each request what a running gateway then does', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, files(backend.url))
  const signedIn = async (username: string) => {
    const credentials = JSON.stringify({ username, password })
    const path = '/x/api/auth/admin/login'
    return (await call(gateway.url, 'POST', path, {}, credentials)).cookie
  }
  const cookies = { alice: await signedIn('alice'), bob: await signedIn('bob') }
  for (const each of cases) {
    const { asks, as, headers = page, body } = each
    const title = `${asks.slice(0, 60)}${as === undefined ? '' : `, as ${as}`}`
    const [method = '', target = ''] = asks.split(' ')
    const { verdict, calls } = await explained(gateway.folder, {
      ...each,
      ...(asks.includes('/login') && as === undefined && body?.includes('"alice"')
        ? { as: 'alice' as const }
        : {})
    })
    const cookie = as === undefined ? undefined : cookies[as]
    const before = backend.seen.length
    const sent = { ...headers, ...(cookie !== undefined && { cookie }) }
    const answer = await call(gateway.url, method, target, sent, body)
    const asked = backend.seen.slice(before).map(({ url }) => backend.url + url)
    if (verdict.passes) t.ok(answer.status < 400, `${title}: passes (${answer.status})`)
    else {
      const code = method === 'HEAD' ? verdict.code : answer.code
      t.same([verdict.status, verdict.code], [answer.status, code], title)
    }
    t.same(
      calls.map(({ url }) => url),
      asked,
      `${title}: goes to`
    )
  }
})

t.test('what decides is told with its line, and what the back-end gets', async t => {
  const folder = await configFolder(files('http://b.internal'))
  const shown = async (...words: string[]) => await run(['explain', ...words, '-c', folder])
  const refused = await shown('GET', '/x/api/orders', '--role', 'viewer')
  t.equal(refused.code, 3)
  t.match(refused.out, /^GET \/x\/api\/orders from 127\.0\.0\.1, as someone \(role viewer\)\n/)
  t.match(refused.out, /\n {2}route +orders {2}\S+routes\.yaml:\d+\n/)
  t.match(refused.out, /has none of the roles that the route needs: admin/)
  t.match(refused.out, /\n {2}error +route\.forbidden: .*\n {2}to do +\S/)
  t.match(refused.out, /\n→ answered with 403 route\.forbidden\n$/)

  const limited = await shown('GET', '/x/api/rare', '--as', 'bob')
  t.equal(limited.code, 0)
  t.match(limited.out, /\n {2}limits +rare 1 of 2 in 1 h {2}\S+limits\.yaml:\d+\n/)
  t.match(
    limited.out,
    /\nasks backend {2}\S+routes\.yaml:\d+\n {2}GET http:\/\/b\.internal\/base\//
  )
  for (const field of ['\\+ x-user-id: 2', '- cookie', '= accept: application/json']) {
    t.match(limited.out, new RegExp(`\n {4}${field}\n`))
  }
  t.match(limited.out, /\n→ passes to backend: http:\/\/b\.internal\/base\/api\/rare\n$/)

  const alias = await shown('GET', '/x/api/dateien/a')
  t.match(alias.out, 'files, called as /api/dateien/*, an alias of /api/files/*')
  const closed = await shown('GET', '/x/api/closed', '--as', 'bob')
  t.match(closed.out, /error +maintenance: /)
})

t.test('a secret of the config is not shown', async t => {
  const folder = await configFolder({
    routes: {
      upstreams: {
        b: { url: 'http://b', headers: { 'tenant': '7', 'x-key': '${KEY}' } }
      },
      routes: { r: { path: '/api/r', access: 'public', upstream: 'b' } }
    }
  })
  const env = { KEY: 'the-key-of-the-upstream' }
  for (const more of [[], ['--json']]) {
    const { out } = await run(['explain', 'GET', '/api/r', '-c', folder, ...more], { env })
    t.notMatch(out, 'the-key-of')
    t.match(out, more.length === 0 ? '+ x-key: (of the config)' : '"x-key"')
  }
})

t.test('words that make no sense are told apart from requests that are refused', async t => {
  const folder = await configFolder({})
  for (const [words, problem] of [
    [['FETCH', '/'], 'There is no method "FETCH".'],
    [['GET', '/a b'], 'A path must not contain blanks'],
    [['GET', '/', '--from', 'here'], '--from is an address'],
    [['GET', '/', '--header', 'nothing'], '--header takes a name and a value'],
    [['GET'], 'Usage']
  ] as const) {
    const { code, err } = await run(['explain', ...words, '-c', folder])
    t.equal(code, 2, words.join(' '))
    t.match(err, problem)
  }
})
