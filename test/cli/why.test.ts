/** `why`, against a running gateway with back-ends that fail. */
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { storyText } from '../../src/cli/why.ts'
import { run } from '../support/command.ts'
import { password, testGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { signInAt } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

interface Files {
  readonly gateway?: Record<string, unknown>
  readonly limits?: Record<string, unknown>
}

/** One back-end that answers, and one at whose address nothing listens. */
async function several(t: Test, files: Files = {}) {
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    const status = url.startsWith('/broken') ? 500 : 200
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"name":"x"}')
  })
  const away = `http://127.0.0.1:${await freePort()}`
  const gateway = await testGateway(t.after, {
    ...files,
    routes: {
      upstreams: { backend: { url: backend.url }, away: { url: away } },
      aliases: { '/api/old-orders': '/api/orders' },
      routes: {
        orders: { path: '/api/orders', methods: ['GET', 'POST'], upstream: 'backend' },
        shaped: {
          path: '/api/shaped',
          upstream: 'backend',
          shape: 'list',
          parts: { roles: { upstream: 'away', rewrite: '/roles', required: false, into: 'roles' } }
        },
        admins: { path: '/api/admins', upstream: 'backend', access: { roles: ['admin'] } },
        down: { path: '/api/down', upstream: 'away', access: 'public' }
      },
      shapes: { list: [{ rename: { name: 'title' } }] }
    }
  })
  const why = async (...words: string[]) => await run(['why', ...words, '-c', gateway.folder])
  return { gateway, why, away }
}

const idOf = ({ headers }: { readonly headers: Headers }) => headers.get('x-request-id') ?? ''

/** A request is kept when its response has been closed, which may be after the client has it. */
async function remembered(gateway: TestGateway, id: string, count = 1): Promise<void> {
  await until('the request is remembered', async () => {
    const response = await gateway.ops(`/ops/api/requests/${id}`)
    const { requests } = (await response.json()) as { readonly requests: readonly object[] }
    return requests.length === count
  })
}

t.test('an alias: route, user, session, limits, upstream and what was sent', async t => {
  const { gateway, why } = await several(t)
  const cookie = await gateway.signIn()
  const path = '/api/old-orders?token=secret'
  const id = idOf(await gateway.call(path, { cookie, method: 'POST' }))
  await remembered(gateway, id)
  const { code, out } = await why(id)
  t.equal(code, 0)
  t.match(out, /^POST \/api\/old-orders → 200, [\d.]+ ms\n/)
  t.match(out, new RegExp(`request +${id}, at .* from 127\\.0\\.0\\.1, replica `))
  t.match(out, 'orders, called as /api/old-orders, an alias of /api/orders')
  t.match(out, /user +alice \(id 1\), signed in by users-file/)
  t.match(out, /session +[\w-]{12}, \d+ m?s old, (?:found in the cache|read from the store)/)
  t.match(out, /limits +signed-in 1 of 100000 in 1 min/)
  t.match(out, /upstream +backend http:..127\.0\.0\.1:\d+, at [\d.]+ ms: 200 after [\d.]+ ms/)
  t.match(out, /sent +200, 12 bytes/)
  t.match(out, /^The oldest request that is kept began at \d{4}-/m)
  t.notMatch(out, 'secret')
})

t.test('a back-end that is away: each attempt with its reason, and what to do', async t => {
  const { gateway, why, away } = await several(t)
  const failed = await gateway.call('/api/down')
  t.equal(failed.status, 502)
  const id = idOf(failed)
  await remembered(gateway, id)
  const { out } = await why(id)
  t.match(out, new RegExp(`upstream +away ${away}, at .*: upstream.refused \\(ECONNREFUSED\\)`))
  t.match(out, /error +upstream\.refused: The service behind this page cannot be reached/)
  t.match(out, /to do +Nothing listens at the address/)
  const line = await gateway.logged(({ msg, requestId }) => msg === 'request' && requestId === id)
  t.match(line, {
    level: 'warn',
    code: 'upstream.refused',
    upstream: 'away',
    reason: /ECONNREFUSED/,
    attempts: [{ upstream: 'away', address: away, reason: 'ECONNREFUSED' }]
  })
  t.equal(gateway.log.filter(({ requestId }) => requestId === id).length, 1, 'one line')
})

t.test('a part that was missing, and the time of shaping', async t => {
  const { gateway, why, away } = await several(t)
  const cookie = await gateway.signIn()
  const response = await gateway.call('/api/shaped', { cookie })
  t.equal(response.status, 200)
  const id = idOf(response)
  await remembered(gateway, id)
  const { out } = await why(id)
  t.match(out, new RegExp(`upstream +away ${away}, for part roles, at .*ECONNREFUSED`))
  t.match(out, /parts +missing: roles/)
  t.match(out, /shape +[\d.]+ ms/)
  const line = await gateway.logged(({ msg, requestId }) => msg === 'request' && requestId === id)
  t.match(line, { status: 200, missing: ['roles'] })
})

t.test('a limit that refused, with its count, and its name in the log', async t => {
  const limits = { limits: { few: { by: 'user', max: 2, window: '1h' } } }
  const { gateway, why } = await several(t, { limits })
  const cookie = await gateway.signIn()
  await gateway.call('/api/orders', { cookie })
  await gateway.call('/api/orders', { cookie })
  const refused = await gateway.call('/api/orders', { cookie })
  t.equal(refused.status, 429)
  const id = idOf(refused)
  await remembered(gateway, id)
  const { out } = await why(id)
  t.match(out, /limits +few 2 of 2 in 1 h: refused the request/)
  t.match(out, /to do +Expected, if the number is right/)
  const line = await gateway.logged(({ msg, requestId }) => msg === 'request' && requestId === id)
  t.match(line, { code: 'limit.exceeded', limit: 'few', user: 'alice', userId: '1' })
})

t.test('a role that is missing, an ended session, and a wrong password', async t => {
  const { gateway, why } = await several(t)
  const cookie = await gateway.signIn('bob')
  const forbidden = idOf(await gateway.call('/api/admins', { cookie }))
  await remembered(gateway, forbidden)
  t.match((await why(forbidden)).out, /has none of the roles that the route needs: admin/)
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  const ended = idOf(await gateway.call('/api/orders', { cookie }))
  await remembered(gateway, ended)
  t.match((await why(ended)).out, /session +[\w-]{12} is over \(revoked\), as the store said/)
  const body = { username: 'bob', password: 'wrong' }
  const wrong = idOf(await gateway.call('/api/auth/admin/login', { json: body }))
  await remembered(gateway, wrong)
  t.match((await why(wrong)).out, /user +bob\n[^]*error +login\.refused/)
})

t.test('requests of a user, of a status and the last ones; the same as JSON', async t => {
  const { gateway, why } = await several(t)
  const alice = await gateway.signIn()
  const bob = await gateway.signIn('bob')
  await gateway.call('/api/orders', { cookie: alice })
  const last = await gateway.call('/api/admins', { cookie: bob })
  await remembered(gateway, idOf(last))
  const asked = JSON.parse((await why('--user', 'bob', '--json')).out) as {
    readonly requests: ReadonlyArray<{ readonly user: string; readonly status: number }>
  }
  t.match(asked.requests, [{ user: 'bob', status: 403 }])
  t.ok(asked.requests.every(({ user }) => user === 'bob'))
  t.equal((await why('--last', '1')).out.match(/^ {2}request /gm)?.length, 1)
  t.match((await why('--user', 'bob', '--status', 'failed')).out, /→ 403[^→]*$/)
  t.match(await why('--user', 'nobody'), { code: 3, out: /No such request is kept/ })
  t.match(await why('a/../b'), { code: 1, err: /up to 64 letters/ })
  for (let index = 0; index < 12; index++) await gateway.call('/api/nowhere', { cookie: alice })
  t.match((await why('--last', '12')).out, /^AT +REQUEST +USER +WHAT +STATUS/)
})

t.test('an id that was used twice names both requests; one of 64 characters is found', async t => {
  const { gateway, why } = await several(t, {
    gateway: { server: { listen: '127.0.0.1:0', trustedProxies: ['127.0.0.1'] } }
  })
  const id = `${'a'.repeat(62)}.-`
  for (const path of ['/api/orders', '/api/nowhere']) {
    const { headers } = await gateway.call(path, { headers: { 'x-request-id': id } })
    t.equal(headers.get('x-request-id'), id)
  }
  await remembered(gateway, id, 2)
  const { out } = await why(id)
  t.match(out, /^The id was used by 2 requests\./)
  t.match(out, 'GET /api/orders → 401')
  t.match(out, 'GET /api/nowhere → 404')
})

t.test('names and paths of clients reach no terminal', async t => {
  const { gateway, why } = await several(t)
  const username = 'eve\u001b]0;owned\u0007\u202e\n  error  none'
  const response = await gateway.call('/api/auth/admin/login', { json: { username, password } })
  await remembered(gateway, idOf(response))
  await gateway.call(`/api/${encodeURI('\u001b[2J')}`)
  for (const words of [[idOf(response)], ['--last', '5'], ['--last', '500']]) {
    const { out } = await why(...words)
    t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    t.notMatch(out, /^ {2}error +none/m)
  }
})

t.test('a request that went well, and only read, is not kept', async t => {
  const { gateway, why } = await several(t)
  const cookie = await gateway.signIn()
  const { code, out } = await why(idOf(await gateway.call('/api/orders', { cookie })))
  t.equal(code, 3)
  t.match(out, /^No request of this id is kept.*the access log has all/)
})

t.test('a sign-in that failed at the back-end: the reason itself', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"token":')
  })
  const { gateway: login, routes } = signInAt(backend.url, { token: 'token' })
  const gateway = await testGateway(t.after, { gateway: login, routes })
  const json = { username: 'ann', password }
  const id = idOf(await gateway.call('/api/auth/admin/login', { json }))
  await remembered(gateway, id)
  const { out } = await run(['why', id, '-c', gateway.folder])
  t.match(out, /upstream +b http.*, for the sign-in, at .*: 200 after/)
  t.match(out, /error +[a-z.-]+: [^]*\n +reason +the response \(status 200\) has no "token"/)
})

t.test('a request that another replica answered is found', async t => {
  const redis = await testRedis(t.after)
  const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const files = {
    gateway: {
      redis: { url: redis.url, commandTimeout: '30s' },
      session: { secrets: ['${SESSION_SECRET}'] }
    }
  }
  const a = await testGateway(t.after, files, environment)
  const b = await testGateway(t.after, files, environment)
  const id = idOf(await b.call('/api/nowhere'))
  await remembered(a, id)
  const { code, out } = await run(['why', id, '-c', a.folder], { env: environment })
  t.equal(code, 0)
  t.match(out, 'GET /api/nowhere → 404')
})

t.test('an error code of another version is shown as it is', t => {
  const request = {
    requestId: 'x',
    at: '2026-01-01T00:00:00.000Z',
    address: '127.0.0.1',
    replica: 'new',
    method: 'GET',
    path: '/',
    route: 'orders',
    ms: 1,
    status: 502
  }
  for (const code of ['upstream.of-tomorrow', 'constructor']) {
    const known = { ...request, code } as unknown as Parameters<typeof storyText>[0]
    const text = storyText(known, new PassThrough())
    t.match(text, new RegExp(`error +${code}\n`))
    t.notMatch(text, 'to do')
  }
  t.end()
})
