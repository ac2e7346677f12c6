/** Identical requests of one session at the same time: one call to the upstream, one response. */
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { type Seen, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

type CleanUp = (undo: () => unknown) => void

/** A back-end that answers when told to. */
async function slowGateway(cleanUp: CleanUp, more: object = {}) {
  const waiting: Array<{ readonly seen: Seen; readonly response: ServerResponse }> = []
  const backend = await testUpstream(cleanUp, (_request, response, seen) => {
    waiting.push({ seen, response })
  })
  const config = {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        orders: {
          path: '/api/orders/*',
          upstream: 'b',
          methods: ['GET', 'POST', 'DELETE'],
          doubleClicks: 'share',
          coalesce: true,
          ...more
        },
        plain: { path: '/api/plain', upstream: 'b', methods: ['GET', 'POST'] }
      }
    }
  }
  const gateway = await testGateway(cleanUp, config)
  const cookie = await gateway.signIn()
  const arrived = (count: number) =>
    until(`${count} requests at the back-end`, () => backend.seen.length === count)
  const joined = (count: number) =>
    until(`${count} requests have joined`, async () => {
      const text = await (await gateway.ops('/metrics')).text()
      return text.includes(
        `console_gateway_copies_used_total{route="orders",use="shared"} ${count}\n`
      )
    })
  const answer = (index: number, value: unknown, headers: Record<string, string> = {}) =>
    waiting[index]?.response
      .writeHead(201, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(value))
  const post = (json: unknown, headers: Record<string, string> = {}, of = cookie) =>
    gateway.call('/api/orders/pay', { json, headers, cookie: of })
  const get = (path: string, of = cookie, headers: Record<string, string> = {}) =>
    gateway.call(path, { cookie: of, headers })
  /** Reloads, with other settings of the upstream. */
  const reload = async (upstream: object) => {
    const upstreams = { b: { url: backend.url, ...upstream } }
    const routes = { ...config.routes, upstreams }
    writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes))
    await gateway.reload('operator')
  }
  return { backend, gateway, cookie, waiting, arrived, joined, answer, post, get, reload }
}

t.test('a double click runs once, and both get the same response', async t => {
  const { backend, arrived, joined, answer, post } = await slowGateway(t.after)
  const first = post({ order: 7 })
  await arrived(1)
  const second = post({ order: 7 })
  await joined(1)
  answer(0, { paid: 1 }, { 'x-receipt': 'r1' })
  for (const { status, json, headers } of [await first, await second]) {
    t.same([status, json, headers.get('x-receipt')], [201, { paid: 1 }, 'r1'])
  }
  t.equal(backend.seen.length, 1)
  // Not at the same time: it is another request.
  const third = post({ order: 7 })
  await arrived(2)
  answer(1, { paid: 2 })
  t.same((await third).json, { paid: 2 })
})

t.test('what differs in body, path, query, key or session runs by itself', async t => {
  const { backend, gateway, cookie, arrived, answer, post } = await slowGateway(t.after)
  const again = await gateway.signIn()
  const bob = await gateway.signIn('bob')
  const running = [
    post({ order: 7 }),
    post({ order: 8 }),
    post({ order: 7 }, { 'idempotency-key': 'a' }),
    post({ order: 7 }, { 'idempotency-key': 'b' }),
    post({ order: 7 }, {}, again),
    post({ order: 7 }, {}, bob),
    gateway.call('/api/orders/pay?x=1', { json: { order: 7 }, cookie }),
    gateway.call('/api/orders/buy', { json: { order: 7 }, cookie }),
    gateway.call('/api/orders/pay', { method: 'DELETE', cookie })
  ]
  await arrived(running.length)
  for (const index of running.keys()) answer(index, { index })
  await Promise.all(running)
  const keys = backend.seen.map(({ headers }) => headers['idempotency-key'])
  t.same(keys.filter(key => key !== undefined).toSorted(), ['a', 'b'])
})

t.test('a failed change is not repeated: all who waited get the failure', async t => {
  const { backend, waiting, arrived, joined, post } = await slowGateway(t.after)
  const first = post({ order: 7 })
  await arrived(1)
  const second = post({ order: 7 })
  await joined(1)
  waiting[0]?.response.destroy()
  for (const { status, json } of [await first, await second]) {
    t.same([status, json.errorCode], [502, 'upstream.reset'])
  }
  t.equal(backend.seen.length, 1)
})

t.test('a change goes on for those who still wait for it', async t => {
  const { backend, gateway, cookie, arrived, joined, answer, post } = await slowGateway(t.after)
  const leaving = new AbortController()
  const first = fetch(`${gateway.url}/api/orders/pay`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: '{"order":7}',
    signal: leaving.signal
  })
  const refused = t.rejects(first, { name: 'AbortError' })
  await arrived(1)
  const second = post({ order: 7 })
  await joined(1)
  leaving.abort()
  await refused
  await gateway.logged(line => line['route'] === 'orders' && line['status'] === 499)
  answer(0, { paid: 1 })
  t.same((await second).json, { paid: 1 })
  t.equal(backend.seen.length, 1)
})

t.test('a change whose response is too large to be shared is not made twice', async t => {
  const { backend, arrived, joined, answer, post } = await slowGateway(t.after)
  const first = post({ order: 7 })
  await arrived(1)
  const second = post({ order: 7 })
  await joined(1)
  answer(0, 'x'.repeat(2 * 1024 * 1024))
  t.equal((await first).text.length, 2 * 1024 * 1024 + 2)
  const { status, json } = await second
  t.same([status, json.errorCode], [409, 'request.repeated'])
  t.equal(backend.seen.length, 1)
})

t.test('a body larger than is collected is sent as ever', async t => {
  const { backend, arrived, answer, post } = await slowGateway(t.after, { maxBody: '4MiB' })
  const large = { text: 'x'.repeat(1024 * 1024) }
  const running = [post(large), post(large)]
  await arrived(2)
  answer(0, 0)
  answer(1, 1)
  t.same((await Promise.all(running)).map(({ json }) => json).toSorted(), [0, 1])
  t.equal(backend.seen.length, 2)
})

t.test('identical reads of one session at the same time are one call', async t => {
  const { backend, arrived, joined, answer, get } = await slowGateway(t.after)
  const first = get('/api/orders/list?page=1')
  await arrived(1)
  const others = [get('/api/orders/list?page=1'), get('/api/orders/list?page=1')]
  await joined(2)
  answer(0, ['a'])
  for (const { status, json } of await Promise.all([first, ...others])) {
    t.same([status, json], [201, ['a']])
  }
  t.equal(backend.seen.length, 1)
})

t.test('reads of two users, two sessions or other headers are never shared', async t => {
  const { gateway, cookie, arrived, answer, get } = await slowGateway(t.after)
  const path = '/api/orders/list'
  const running = [
    get(path),
    get(path, await gateway.signIn()),
    get(path, await gateway.signIn('bob')),
    get(path, cookie, { 'accept-language': 'zh' }),
    get(path, cookie, { 'x-tenant': 'b' }),
    gateway.call(path, { method: 'HEAD', cookie })
  ]
  await arrived(running.length)
  for (const index of running.keys()) answer(index, index)
  const values = (await Promise.all(running)).map(({ json }) => json)
  t.equal(new Set(values).size, running.length)
})

t.test('headers that are not forwarded make no difference', async t => {
  const { backend, cookie, arrived, joined, answer, get } = await slowGateway(t.after)
  const first = get('/api/orders/list')
  await arrived(1)
  const headers = { 'x-forwarded-for': '6.6.6.6', 'x-user-id': '1', 'x-original-url': '/admin' }
  const second = get('/api/orders/list', cookie, headers)
  await joined(1)
  answer(0, ['a'])
  t.same([(await first).json, (await second).json], [['a'], ['a']])
  t.equal(backend.seen[0]?.headers['x-original-url'], undefined)
})

t.test('a response that sets a cookie goes to one; the others ask by themselves', async t => {
  const { arrived, joined, answer, get } = await slowGateway(t.after, { setCookies: ['theme'] })
  const first = get('/api/orders/list')
  await arrived(1)
  const second = get('/api/orders/list')
  await joined(1)
  answer(0, 'first', { 'set-cookie': 'theme=dark' })
  t.equal((await first).headers.get('set-cookie'), 'theme=dark')
  await arrived(2)
  answer(1, 'second')
  const { json, headers } = await second
  t.same([json, headers.get('set-cookie')], ['second', null])
})

t.test('a streamed response goes to one; the others ask by themselves', async t => {
  const { waiting, gateway, cookie, arrived, joined, answer, get } = await slowGateway(t.after)
  const first = fetch(`${gateway.url}/api/orders/events`, { headers: { cookie } })
  await arrived(1)
  const second = get('/api/orders/events')
  await joined(1)
  waiting[0]?.response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  const stream = await first
  await arrived(2)
  answer(1, 'second')
  t.equal((await second).json, 'second')
  waiting[0]?.response.end()
  t.equal(await stream.text(), 'data: 1\n\n')
})

t.test('trailers of a response too large to be shared reach the client', async t => {
  const { waiting, gateway, cookie, arrived } = await slowGateway(t.after)
  const trailersOf = async (method: string) => {
    const call = request(`${gateway.url}/api/orders/export`, {
      method,
      headers: { cookie, origin: gateway.url, te: 'trailers' }
    })
    call.end()
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    return response.trailers
  }
  for (const [index, method] of ['GET', 'POST'].entries()) {
    const running = trailersOf(method)
    await arrived(index + 1)
    const { response } = waiting[index] ?? {}
    response?.writeHead(200, { 'content-type': 'text/csv', 'trailer': 'x-sum' })
    response?.write('x'.repeat(2 * 1024 * 1024))
    response?.addTrailers({ 'x-sum': '17' })
    response?.end()
    t.same(await running, { 'x-sum': '17' }, method)
  }
})

t.test('the log says why a stream was cut, and nothing of a client that left', async t => {
  const { waiting, gateway, cookie, arrived } = await slowGateway(t.after)
  for (const [path, code] of [
    ['/api/orders/cut', 'upstream.reset'],
    ['/api/orders/left', undefined]
  ] as const) {
    const client = new AbortController()
    const asked = fetch(gateway.url + path, { headers: { cookie }, signal: client.signal })
    await arrived(waiting.length + 1)
    const { response } = waiting.at(-1) ?? {}
    response?.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    const stream = await asked
    if (code === undefined) client.abort()
    else response?.destroy()
    await t.rejects(stream.text())
    const line = await gateway.logged(({ msg, path: of }) => msg === 'request' && of === path)
    t.equal(line['status'], 499)
    t.equal(line['code'], code)
  }
})

t.test('the last one who leaves ends the call', async t => {
  const { backend, gateway, cookie, arrived, joined } = await slowGateway(t.after)
  const clients = [new AbortController(), new AbortController()]
  const running = clients.map(async ({ signal }, index) => {
    if (index === 1) await arrived(1)
    return await fetch(`${gateway.url}/api/orders/list`, { headers: { cookie }, signal })
  })
  const refused = running.map(each => t.rejects(each, { name: 'AbortError' }))
  await joined(1)
  clients[0]?.abort()
  await gateway.logged(line => line['route'] === 'orders' && line['status'] === 499)
  let isAborted = false
  const aborted = backend.aborted().then(() => (isAborted = true))
  t.equal(isAborted, false)
  clients[1]?.abort()
  await aborted
  await Promise.all(refused)
})

t.test('nobody gets a response that was asked for before his own change', async t => {
  const { gateway, cookie, arrived, answer, get } = await slowGateway(t.after)
  const before = get('/api/orders/list')
  await arrived(1)
  const change = gateway.call('/api/plain', { json: {}, cookie })
  await arrived(2)
  answer(1, {})
  await change
  const after = get('/api/orders/list')
  await arrived(3)
  answer(0, 'old')
  answer(2, 'new')
  t.same([(await before).json, (await after).json], ['old', 'new'])
})

t.test(
  'a second click after a reload gets the response to the first, wherever it runs',
  async t => {
    const { backend, arrived, joined, answer, post, reload } = await slowGateway(t.after)
    const other = await testUpstream(t.after)
    const first = post({ order: 7 })
    await arrived(1)
    await reload({ url: other.url, headers: { 'x-tenant': 'b' } })
    const second = post({ order: 7 })
    await joined(1)
    answer(0, { paid: 1 })
    for (const { status, json } of [await first, await second]) {
      t.same([status, json], [201, { paid: 1 }])
    }
    t.equal(backend.begun() + other.begun(), 1)
    await post({ order: 7 })
    t.equal(other.begun(), 1, 'the next one goes to the new back-end')
  }
)

t.test('reads join across a reload, unless another back-end or tenant is asked now', async t => {
  const { backend, arrived, joined, answer, get, reload } = await slowGateway(t.after)
  const first = get('/api/orders/7')
  await arrived(1)
  await reload({ responseTimeout: '20s' })
  const second = get('/api/orders/7')
  await joined(1)
  await reload({ headers: { 'x-tenant': 'b' } })
  const third = get('/api/orders/7')
  await arrived(2)
  const other = await testUpstream(t.after)
  await reload({ url: other.url })
  t.same((await get('/api/orders/7')).json, { ok: 1 })
  answer(0, { of: 'a' })
  answer(1, { of: 'b' })
  const values = await Promise.all([first, second, third])
  t.same(
    values.map(({ json }) => json),
    [{ of: 'a' }, { of: 'a' }, { of: 'b' }]
  )
  t.equal(backend.begun(), 2)
})
