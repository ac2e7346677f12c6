/** A refused request says which rule refused it: by a code and an id in response, log and `why`. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type CallOptions, password, testGateway } from '../support/gateway.ts'
import { beginMaintenance } from '../support/ops.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { loginPath } from '../support/wire.ts'

const backend = await testUpstream(t.teardown, (asked, response, seen) => {
  if (seen.url === '/broken') return void response.socket?.destroy()
  if (seen.url === '/own') return json(418, { error: 'teapot' })(asked, response, seen)
  if (seen.url !== '/page') return json(200, {})(asked, response, seen)
  response.writeHead(500, { 'content-type': 'text/html' }).end('<p>')
})
const hooked: string[] = []

/** As agents of tracing do. */
function addHooks(message: unknown): void {
  const { fastify } = message as { readonly fastify: FastifyInstance }
  fastify.addHook('onSend', async (_request, reply) => {
    reply.header('x-plugin', 'was here')
  })
  fastify.addHook('onResponse', async ({ id }) => {
    hooked.push(id)
  })
}
subscribe('fastify.initialization', addHooks)
t.teardown(() => unsubscribe('fastify.initialization', addHooks))

const both = ['GET', 'POST']
const open = { access: 'public' }
const gateway = await testGateway(t.teardown, {
  gateway: { console: { root: 'console' } },
  backend: backend.url,
  routes: {
    routes: {
      admins: { access: { roles: ['admin'] }, methods: both },
      mine: { methods: both, maxBody: '16B' },
      socket: { ...open, websocket: {} },
      broken: { ...open, rewrite: '/broken' },
      own: { ...open, rewrite: '/own', methods: both },
      shaped: { ...open, shape: 's' },
      page: { ...open, rewrite: '/page' },
      quiet: { ...open, rewrite: '/broken', errorStatus: 'ok' },
      closed: open,
      rare: open
    },
    shapes: { s: [{ pick: ['a'] }] }
  },
  limits: { limits: { rare: { by: 'address', max: 1, window: '1h', routes: ['rare'] } } },
  code: { 'console/index.html': 'x' }
})
const cookie = await gateway.signIn('bob')
await beginMaintenance(gateway.opsUrl, { routes: ['closed'] })

/** What every response has, in the log and, where it failed, in the body and in `why`. */
async function isTold(
  t: Test,
  { status, code }: { readonly status: number; readonly code: string | undefined },
  id: string,
  body: string
) {
  const title = `${status} ${code}`
  t.match(id, /^[\da-f-]{36}$/, title)
  const line = await gateway.logged(line => line['requestId'] === id && 'status' in line)
  t.match(line, { status, code, address: '127.0.0.1' }, title)
  if (code === undefined) return t.notOk('code' in line, title)
  t.match(JSON.parse(body), { errorCode: code, requestId: id }, title)
  if (status < 400) return
  await until('why has it', async () => {
    const { requests } = await gateway.opsJson(`requests?id=${id}`)
    return requests.length === 1
  })
}

t.test('each error of the gateway has its code, what passes has none; plugins see all', async t => {
  const foreign = { cookie, method: 'POST', headers: { origin: 'https://evil.example' } }
  const large = { cookie, json: { more: 'than sixteen bytes' } }
  const typed = { method: 'POST', body: password, headers: { 'content-type': 'text/x' } }
  type Case = readonly [status: number, code: string | undefined, path: string, CallOptions?]
  const cases: readonly Case[] = [
    [200, undefined, '/api/rare'],
    [429, 'limit.exceeded', '/api/rare'],
    [403, 'route.forbidden', '/api/admins', { cookie }],
    [403, 'origin.refused', '/api/mine', foreign],
    [401, 'session.none', '/api/mine'],
    [401, 'session.none', '/api/account/profile', { cookie: 'console_sid=forged' }],
    [413, 'request.too-large', '/api/mine', large],
    [401, 'login.refused', loginPath, { json: { username: 'bob', password: 'wrong' } }],
    [400, 'request.malformed', loginPath, { json: { username: 1 } }],
    [415, 'request.type', loginPath, typed],
    [404, 'route.unknown', '/nowhere.js'],
    [405, 'route.method', '/api/own', { method: 'DELETE' }],
    [400, 'request.path', '/api//x'],
    [502, 'upstream.reset', '/api/broken'],
    [500, 'upstream.error', '/api/page'],
    [503, 'maintenance', '/api/closed'],
    [200, 'upstream.reset', '/api/quiet'],
    [418, undefined, '/api/own'],
    [418, undefined, '/api/own', { method: 'HEAD' }],
    [418, undefined, '/api/own', { json: {} }],
    [200, undefined, '/api/shaped'],
    [200, undefined, '/api/account/profile', { cookie }],
    [200, undefined, '/index.html']
  ]
  for (const [status, code, path, options] of cases) {
    const { status: answered, headers, text } = await gateway.call(path, options)
    t.equal(answered, status, path)
    const id = headers.get('x-request-id') ?? ''
    await isTold(t, { status, code }, id, text)
    t.equal(headers.get('x-plugin'), 'was here', path)
    await until('a hook sees its end', () => hooked.includes(id))
  }
  t.equal(new Set(hooked).size, hooked.length)
})

const idIn = (head: string) => /^x-request-id: (\S+)/im.exec(head)?.[1] ?? 'none'

t.test('so has what never became a request', async t => {
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
  for (const [status, code, bytes] of [
    [417, 'request.expectation', request('GET /api/rare', ['Expect: x'])],
    [400, 'request.path', request('GET /api/%ff')],
    [400, 'request.malformed', 'GARBAGE\r\n\r\n'],
    [431, 'request.headers', request('GET /', [`X-Long: ${'x'.repeat(20_000)}`])],
    [405, 'route.method', request('CONNECT 127.0.0.1:443')],
    [404, 'route.unknown', request('GET /api/nothing', upgrade)],
    [400, 'request.malformed', request('GET /api/socket', upgrade)]
  ] as const) {
    const answer = await raw(gateway.url, bytes)
    t.equal(answer.status, status, code)
    await isTold(t, { status, code }, idIn(answer.head), answer.body)
  }
})
