/** Copies of a user's own responses: fresh ones (`cache`), and old ones in an outage (`fallback`). */
import type { OutgoingHttpHeaders } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

type CleanUp = (undo: () => unknown) => void
interface Response {
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  readonly body?: unknown
}

/** A back-end that answers with its latest `answer`, or breaks the connection. */
async function keptGateway(cleanUp: CleanUp, route: object, more: object = {}) {
  const state: { answer: Response | 'reset' | 'silent' } = { answer: { body: ['a'] } }
  const part = { isSilent: false }
  const backend = await testUpstream(cleanUp, (request, response, { headers }) => {
    if (request.url === '/part') return void (part.isSilent || response.end('1'))
    if (state.answer === 'reset') return void response.destroy()
    if (state.answer === 'silent') return
    const { status = 200, headers: own = {}, body } = state.answer
    if (own['etag'] !== undefined && headers['if-none-match'] === own['etag']) {
      return void response.writeHead(304, own).end()
    }
    const text = JSON.stringify(body ?? request.url)
    response.writeHead(status, { 'content-type': 'application/json', ...own }).end(text)
  })
  const upstream = 'b'
  const gateway = await testGateway(cleanUp, {
    routes: {
      upstreams: { b: { url: backend.url, breaker: { failures: 100 } } },
      routes: {
        list: { path: '/api/list', upstream, methods: ['GET', 'POST'], ...route },
        item: { path: '/api/items/*', upstream, methods: ['GET', 'POST', 'PUT'], ...route },
        plain: { path: '/api/plain', rewrite: '/api/list', upstream, methods: ['POST'] }
      },
      shapes: { wrapped: [{ open: 'code-data' }] },
      ...more
    },
    limits: {
      copies: { maxEntries: 50, maxBytes: '128KiB' },
      limits: { 'signed-in': { by: 'user', max: 100_000, window: '1m' } }
    }
  })
  const cookie = await gateway.signIn()
  const get = async (path = '/api/list', of = cookie, headers: Record<string, string> = {}) => {
    const { status, json, headers: fields } = await gateway.call(path, { cookie: of, headers })
    return { status, json, mark: fields.get('cache-status'), age: fields.get('age'), fields }
  }
  const metric = async (name: string) => {
    const text = await (await gateway.ops('/metrics')).text()
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])
  }
  const answer = (next: Response | 'reset' | 'silent') => {
    state.answer = next
  }
  return { backend, gateway, cookie, get, metric, answer, part }
}

const fresh = { 'cache-control': 'max-age=60' }
const cached = { cache: 'private' }
const lastGood = { fallback: { lastGood: true } }

t.test('a fresh response is kept for the session that got it, and for no other', async t => {
  const { backend, gateway, cookie, get, answer } = await keptGateway(t.after, cached)
  answer({ headers: fresh, body: ['first'] })
  t.match(await get(), { mark: 'console-gateway; fwd=uri-miss; fwd-status=200; stored', age: null })
  answer({ headers: fresh, body: ['second'] })
  const hit = await get()
  t.match(hit, {
    status: 200,
    json: ['first'],
    mark: /^console-gateway; hit; ttl=\d+$/,
    age: /^\d+$/
  })
  t.equal(hit.fields.get('cache-control'), 'no-store', 'browsers keep nothing')
  t.equal(backend.seen.length, 1)
  for (const other of [await gateway.signIn(), await gateway.signIn('bob')]) {
    t.same((await get('/api/list', other)).json, ['second'])
  }
  t.same((await get('/api/list?page=2')).json, ['second'])
  t.same((await get('/api/list', cookie, { 'accept-language': 'zh' })).json, ['second'])
  t.same((await get('/api/list', cookie, { 'x-tenant': 'b' })).json, ['second'])
  // Not forwarded, so of no effect, and nothing can be planted by it.
  const planted = { 'x-forwarded-host': 'evil', 'x-original-url': '/admin', 'x-user-id': '2' }
  t.same((await get('/api/list', cookie, planted)).json, ['first'])
  t.equal((await gateway.call('/api/list', { method: 'HEAD', cookie })).status, 200)
  t.equal(backend.seen.at(-1)?.method, 'HEAD', 'HEAD is never answered from a copy')
})

t.test('what may not be kept is never kept', async t => {
  const { backend, get, answer, metric, cookie } = await keptGateway(t.after, {
    ...cached,
    ...lastGood,
    setCookies: ['theme']
  })
  const headers: OutgoingHttpHeaders[] = [
    { 'cache-control': 'no-store, max-age=60' },
    { 'cache-control': 'max-age=60, No-Store' },
    { ...fresh, 'set-cookie': 'theme=dark' },
    { ...fresh, 'set-cookie': 'sid=1' },
    { ...fresh, vary: '*' },
    { ...fresh, vary: 'Accept, X-Request-Id' }
  ]
  for (const each of headers) {
    answer({ headers: each })
    await get()
    const { length } = backend.seen
    t.match((await get()).mark, /fwd=uri-miss; fwd-status=200$/, JSON.stringify(each))
    t.equal(backend.seen.length, length + 1)
  }
  answer({ headers: fresh, status: 404 })
  await get()
  answer({ headers: fresh })
  await get('/api/list', cookie, { 'cache-control': 'no-store' })
  await get('/api/list', cookie, { range: 'bytes=0-1' })
  t.equal(await metric('console_gateway_copies'), 0)
  answer('reset')
  t.equal((await get()).status, 502)
})

t.test('a stale copy is validated, and renewed by 304', async t => {
  const { backend, get, answer, cookie } = await keptGateway(t.after, cached)
  answer({ headers: { etag: '"1"' }, body: ['first'] })
  await get()
  answer({ headers: { 'etag': '"1"', 'x-version': '2', ...fresh }, body: ['never sent'] })
  const validated = await get()
  t.match(validated, { json: ['first'], mark: 'console-gateway; fwd=stale; fwd-status=304' })
  t.equal(validated.fields.get('x-version'), '2')
  t.equal(backend.seen[1]?.headers['if-none-match'], '"1"')
  t.match(await get(), { json: ['first'], mark: /; hit; ttl=/ })
  t.match((await get('/api/list', cookie, { 'cache-control': 'no-cache' })).mark, /fwd-status=304/)
  answer({ headers: { etag: '"2"' }, body: ['second'] })
  t.same((await get('/api/list', cookie, { pragma: 'no-cache' })).json, ['second'])
  // The client's own condition is its own matter.
  const own = await get('/api/list', cookie, { 'if-none-match': '"2"' })
  t.equal(own.status, 304)
})

t.test('another back-end, or other fixed headers, make copies useless', async t => {
  const { backend, gateway, get, answer } = await keptGateway(t.after, { ...cached, ...lastGood })
  answer({ headers: fresh, body: ['first'] })
  await get()
  t.match((await get()).mark, /; hit; ttl=/)
  const file = join(gateway.folder, 'routes.yaml')
  const before = readFileSync(file, 'utf8')
  const reload = async (url: string, more: string) => {
    const changed = before.replace(/url: .*/, `url: ${url}\n    ${more}`)
    writeFileSync(file, changed)
    await gateway.reload('operator')
  }
  await reload(backend.url, 'responseTimeout: 20s')
  t.match((await get()).mark, /; hit; ttl=/)
  answer('reset')
  await reload(backend.url, 'headers: { x-tenant: b }')
  t.match(await get(), { status: 502, mark: null }, 'the tenant of before says nothing of this one')
  const other = await testUpstream(t.after)
  await reload(other.url, 'responseTimeout: 20s')
  t.match(await get(), { json: { ok: 1 }, mark: /fwd=uri-miss/ })
})

t.test('cacheMaxAge bounds what the upstream says', async t => {
  const { backend, get, answer } = await keptGateway(t.after, { ...cached, cacheMaxAge: '0ms' })
  answer({ headers: fresh })
  await get()
  await get()
  t.equal(backend.seen.length, 2)
})

t.test('a change on the same path drops the copy', async t => {
  const { gateway, cookie, get, answer } = await keptGateway(t.after, cached)
  for (const path of ['/api/list', '/api/plain']) {
    answer({ headers: fresh, body: [path] })
    await get('/api/list?page=1')
    answer({ status: 422, body: {} })
    await gateway.call(path, { json: {}, cookie })
    t.match((await get('/api/list?page=1')).mark, /; hit; /, 'a refused change is none')
    answer({ headers: fresh, body: ['new'] })
    await gateway.call(path, { json: {}, cookie })
    t.same((await get('/api/list?page=1')).json, ['new'], path)
    await gateway.call(path, { json: {}, cookie })
  }
})

t.test('in an outage the user sees the last good response, marked', async t => {
  const { backend, gateway, cookie, get, answer } = await keptGateway(t.after, lastGood)
  answer({ body: ['old'] })
  t.equal((await get()).mark, null)
  const stale = {
    status: 200,
    json: ['old'],
    mark: 'console-gateway; hit; detail=stale-on-error',
    age: /^\d+$/
  }
  for (const status of [502, 503, 504]) {
    answer({ status, body: {} })
    t.match(await get(), stale, String(status))
  }
  answer('reset')
  t.match(await get(), stale)
  for (const other of [await gateway.signIn(), await gateway.signIn('bob')]) {
    t.equal((await get('/api/list', other)).status, 502)
  }
  t.equal((await get('/api/list?page=2')).status, 502)
  t.equal((await gateway.call('/api/list', { json: {}, cookie })).status, 502)
  answer({ body: ['old'] })
  await get()
  answer({ status: 500, body: {} })
  t.equal((await get()).status, 500, 'a fault of the back-end is no outage')
  await backend.close()
  t.match(await get(), stale, 'refused')
})

t.test('the last good response is not used where it may not be shown any more', async t => {
  const { get, answer } = await keptGateway(t.after, lastGood)
  for (const value of ['no-cache', 'must-revalidate', 'no-store']) {
    answer({ headers: { 'cache-control': value } })
    await get()
    answer('reset')
    t.equal((await get()).status, 502, value)
  }
  answer({ body: ['old'] })
  await get()
  answer({ status: 403, body: {} })
  t.equal((await get()).status, 403)
  answer('reset')
  t.equal((await get()).status, 502, 'the back-end had withdrawn it')
})

t.test('a slow back-end counts as an outage', async t => {
  const { backend, get, answer } = await keptGateway(t.after, { ...lastGood, timeout: '2s' })
  await get()
  answer('silent')
  t.match(await get(), { status: 200, json: ['a'], mark: /stale-on-error/ })
  t.equal(backend.seen.length, 2)
})

t.test('a fixed response stands in for what fails, by role', async t => {
  const fallback = { body: { rows: [] }, byRole: { admin: { rows: ['admin'] } }, status: 203 }
  const { gateway, get, answer, cookie } = await keptGateway(t.after, { fallback })
  t.match(await get(), { status: 200, mark: null })
  answer('reset')
  const mark = 'console-gateway; fwd=miss; detail=fixed'
  t.match(await get(), { status: 203, json: { rows: ['admin'] }, mark })
  t.match(await get('/api/list', await gateway.signIn('bob')), { json: { rows: [] }, mark })
  t.equal((await gateway.call('/api/list', { json: {}, cookie })).status, 502)
})

t.test('HEAD gets the headers of the fallback, without its body', async t => {
  const fallback = { lastGood: true, body: { rows: [] } }
  const { backend, gateway, get, answer, metric, cookie } = await keptGateway(t.after, { fallback })
  const head = async () => {
    const { status, text, headers } = await gateway.call('/api/list', { method: 'HEAD', cookie })
    return {
      status,
      text,
      mark: headers.get('cache-status'),
      length: headers.get('content-length')
    }
  }
  t.match(await head(), { status: 200, mark: null })
  t.equal(await metric('console_gateway_copies'), 0)
  answer('reset')
  const mark = 'console-gateway; fwd=miss; detail=fixed'
  t.match(await head(), { status: 200, text: '', mark, length: '11' })
  answer({ status: 503 })
  t.match(await head(), { status: 200, text: '', mark })
  answer({ body: ['a'] })
  await get()
  answer({ status: 404 })
  t.match(await head(), { status: 404, mark: null }, 'what is no failure passes')
  answer('reset')
  const { length } = backend.seen
  const old = { status: 200, text: '', mark: 'console-gateway; hit; detail=stale-on-error' }
  t.match(await head(), old)
  t.ok(backend.seen.length > length, 'it has been asked')
})

t.test('an upstream whose breaker is open has failed too', async t => {
  const { backend, gateway, cookie, get, metric } = await keptGateway(t.after, {
    fallback: { lastGood: true, body: { rows: [] } }
  })
  await get()
  await backend.close()
  await Promise.all(Array.from({ length: 120 }, async () => await get('/api/items/1')))
  const open = 'console_gateway_upstream_addresses{upstream="b",state="open"}'
  await until('the breaker is open', async () => (await metric(RegExp.escape(open))) === 1)
  const refused = await gateway.call('/api/plain', { json: {}, cookie })
  t.match(refused, { status: 503, json: { errorCode: 'upstream.unavailable' } })
  t.match(await get(), { status: 200, json: ['a'], mark: /; hit; detail=stale-on-error$/ })
  t.match(await get('/api/list?other'), { status: 200, json: { rows: [] }, mark: /fixed$/ })
})

t.test('a copy is shaped like the response, and an error in its body is no good one', async t => {
  const { get, answer } = await keptGateway(t.after, { ...lastGood, shape: 'wrapped' })
  answer({ body: { code: 0, data: ['old'] } })
  t.same((await get()).json, ['old'])
  answer('reset')
  t.match(await get(), { json: ['old'], mark: /stale-on-error/ })
  answer({ body: { code: 7, data: null } })
  t.not((await get('/api/list?page=2')).status, 200)
  answer('reset')
  t.equal((await get('/api/list?page=2')).status, 502)
})

t.test('an error in the body drops the copy as its status would', async t => {
  for (const errorStatus of ['own', 'ok']) {
    const { get, answer } = await keptGateway(t.after, {
      ...lastGood,
      shape: 'wrapped',
      errorStatus
    })
    answer({ body: { code: 0, data: ['secret'] } })
    t.same((await get()).json, ['secret'])
    answer({ body: { code: 500, msg: 'db down' } })
    t.not((await get()).json.errorCode, undefined)
    answer({ status: 503 })
    t.match(await get(), { json: ['secret'], mark: /stale-on-error/ }, 'a fault withdraws nothing')
    answer({ body: { code: 403, msg: 'not any more' } })
    t.not((await get()).json.errorCode, undefined)
    answer({ status: 503 })
    const after = await get()
    t.match(after, { mark: null }, errorStatus)
    t.not(after.json.errorCode, undefined)
  }
})

t.test('a response that its client did not wait for makes no good copy', async t => {
  const { backend, gateway, cookie, get, answer, part } = await keptGateway(t.after, {
    ...lastGood,
    methods: ['GET'],
    shape: 'wrapped',
    parts: { more: { upstream: 'b', rewrite: '/part', into: 'more' } }
  })
  answer({ body: { code: 0, data: { rows: ['good'] } } })
  t.match(await get(), { status: 200, json: { rows: ['good'] } })
  answer({ body: { code: 7, msg: 'db down' } })
  part.isSilent = true
  const leaving = new AbortController()
  const asked = backend.seen.length
  const left = fetch(`${gateway.url}/api/list`, { headers: { cookie }, signal: leaving.signal })
  await until('both are asked', () => backend.seen.length === asked + 2)
  // Its response is on the way before that of the next request.
  await gateway.call('/api/account/profile', { cookie })
  leaving.abort()
  await t.rejects(left)
  await gateway.logged(({ status }) => status === 499)
  part.isSilent = false
  answer('reset')
  t.match(await get(), { status: 200, json: { rows: ['good'] }, mark: /stale-on-error/ })
})

t.test('copies are dropped at sign-out, without any further request', async t => {
  const { gateway, cookie, get, answer, metric } = await keptGateway(t.after, cached)
  answer({ headers: fresh })
  await get()
  await get('/api/items/1')
  t.equal(await metric('console_gateway_copies'), 2)
  t.ok((await metric('console_gateway_copies_bytes')) > 2000)
  const signOut = await gateway.call('/api/account/logout', { method: 'POST', cookie })
  t.equal(signOut.status, 200)
  await until('the copies are dropped', async () => (await metric('console_gateway_copies')) === 0)
  t.equal((await get()).status, 401)
})

t.test('copies are bounded by count and bytes', async t => {
  const { get, answer, metric } = await keptGateway(t.after, cached)
  answer({ headers: fresh })
  for (let index = 0; index < 80; index++) await get(`/api/items/${index}`)
  t.equal(await metric('console_gateway_copies'), 50)
  answer({ headers: fresh, body: 'x'.repeat(30_000) })
  for (let index = 0; index < 80; index++) {
    await get(`/api/items/large-${index}`)
    t.ok((await metric('console_gateway_copies_bytes')) <= 128 * 1024)
  }
  t.ok((await metric('console_gateway_copies')) <= 4)
  t.match((await get('/api/items/large-79')).mark, /; hit; /)
  answer({ headers: fresh, body: 'x'.repeat(200_000) })
  await get('/api/items/too-large')
  t.match((await get('/api/items/too-large')).mark, /uri-miss/)
})

t.test('a change of roles makes copies useless, and drops them', async t => {
  const { backend, gateway, cookie, get, answer, metric } = await keptGateway(t.after, {
    ...cached,
    ...lastGood
  })
  answer({ headers: fresh, body: ['for admins'] })
  await get()
  const file = join(gateway.folder, 'users.yaml')
  const before = readFileSync(file, 'utf8')
  const after = before.replace(/roles:\s+- admin\s+- user/, 'roles: [user]')
  t.not(after, before)
  writeFileSync(file, after)
  await gateway.reload('operator')
  await until('the copies are dropped', async () => (await metric('console_gateway_copies')) === 0)
  answer('reset')
  t.equal((await get('/api/list', cookie)).status, 502)
  t.ok(backend.seen.length > 1, 'the upstream was asked')
})
