/** An upstream's addresses: which are asked, left out or asked again, and what operators see. */
import dns from 'node:dns'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { rawUpstream, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const route = { methods: ['GET', 'POST', 'PUT'], access: 'public', rewrite: '/x' }
const routes = {
  routes: { plain: route, shaped: { ...route, shape: 's' } },
  shapes: { s: [{ wrap: 'list' }] }
}

async function gatewayOf(t: Test, addresses: readonly string[], more: object = {}) {
  const gateway = await testGateway(t.after, {
    backend: { url: addresses, ...more },
    routes
  })
  const ask = async (method = 'GET', body?: string, path = '/api/plain') =>
    await gateway.call(path, { method, ...(body !== undefined && { body }) })
  const changes = () =>
    gateway.log
      .filter(({ event }) => String(event).startsWith('upstream.address.'))
      .map(({ event, address }) => `${String(address)} ${String(event).split('.').at(-1)}`)
  const became = async (...expected: string[]) =>
    await until(expected.join(), () => expected.every(change => changes().includes(change)))
  /** Requests that its addresses have. */
  const inFlight = async () => {
    const status = await gateway.opsJson('status')
    return status.upstreams.map((upstream: { inFlight: number }) => upstream.inFlight).join()
  }
  return { ...gateway, ask, changes, became, inFlight }
}

const deadAddress = async () => `http://127.0.0.1:${await freePort()}`

async function listenAt(t: Test, port: number, host: string, answer: () => string) {
  const server = createServer((_request, response) => response.end(answer()))
  await new Promise<void>(resolve => server.listen(port, host, resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
}

/** A back-end with a health of its own, which counts checks apart from requests. */
async function healthyBackend(t: Test) {
  const state = { health: 204, status: 200 }
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    response.writeHead(url === '/healthz' ? state.health : state.status).end('{}')
  })
  const count = (isCheck: boolean) => () =>
    backend.seen.filter(({ url }) => (url === '/healthz') === isCheck).length
  return Object.assign(state, { backend, checks: count(true), requests: count(false) })
}
const health = { path: '/healthz', interval: '10ms' }

t.test('all addresses get requests, each with its own Host', async t => {
  const backends = await Promise.all([testUpstream(t.after), testUpstream(t.after)])
  const urls = backends.map(({ url }) => url)
  const { ask } = await gatewayOf(t, urls)
  for (let count = 0; count < 60; count++) await ask()
  for (const { seen, url } of backends) {
    t.ok(seen.length > 10, `${seen.length}`)
    t.ok(seen.every(({ headers }) => headers.host === new URL(url).host))
  }
  const count = backends.flatMap(({ seen }) => seen).length
  t.equal(count, 60, 'and no others: nothing is checked')
})

t.test('a dead address is left out, no request fails, and operators alone are told', async t => {
  const [one, two] = [await testUpstream(t.after), await testUpstream(t.after)]
  const dead = await deadAddress()
  const { ask, log, metrics, ...gateway } = await gatewayOf(t, [one.url, two.url, dead])
  await until('the dead one is left out', async () => {
    const { status, text, headers } = await ask()
    if (status !== 200) throw new Error(`${status}`)
    t.notMatch(text + JSON.stringify([...headers]), /127\.0\.0\.1/, 'no response names an address')
    return (await metrics()).includes('upstream_addresses{upstream="b",state="up"} 2')
  })
  t.equal(log.filter(({ level }) => level === 'error').length, 0)
  const lines = log.filter(({ event }) => String(event).startsWith('upstream.'))
  t.match(lines, [{ event: 'upstream.address.open', upstream: 'b', address: dead, level: 'warn' }])
  t.equal(lines.length, 1, 'one line for the change')

  const text = await metrics()
  t.match(text, 'upstream_addresses{upstream="b",state="open"} 1')
  t.match(text, 'upstream_address_opened_total{upstream="b"} 1')
  t.match(text, /upstream_retries_total\{upstream="b",kind="elsewhere"\} [1-9]/)
  t.notMatch(text, dead, 'no label grows with addresses')
  const degraded = `degraded, 1 of 3 addresses: ${dead} does not work: requests failed`
  const ready = await gateway.ops('/readyz')
  t.equal(ready.status, 200)
  t.match(await ready.json(), { 'status': 'ready', 'upstream b': degraded })
  const shown = await fetch(`${gateway.opsUrl}/readyz`)
  t.same([shown.status, await shown.json()], [200, { status: 'ready' }])
  t.match((await gateway.opsJson('status')).upstreams, [
    { address: one.url, state: 'up', inFlight: 0 },
    { address: two.url, state: 'up', inFlight: 0 },
    { address: dead, state: 'open', inFlight: 0 }
  ])
})

for (const [method, body] of [
  ['POST', 'a few bytes'],
  ['PUT', 'a streamed upload '.repeat(20_000)]
] as const) {
  t.test(`a ${method} goes elsewhere where one refuses, whole`, async t => {
    const [backend, dead] = [await testUpstream(t.after), await deadAddress()]
    // The second one is asked first.
    const { ask, changes } = await gatewayOf(t, [backend.url, dead])
    t.equal((await ask(method, body)).status, 200)
    t.equal(backend.seen.map(seen => String(seen.body)).join(), body, 'once')
    t.same(changes(), [`${dead} open`])
  })
}

t.test('silence leaves an address out', async t => {
  const [good, silent] = [await testUpstream(t.after), await rawUpstream(t.after, () => {})]
  const { ask, changes } = await gatewayOf(t, [silent.url, good.url], { responseTimeout: '50ms' })
  await until('the silent one is left out', async () => {
    await ask()
    return changes().includes(`${silent.url} open`)
  })
})

t.test('what the client does counts for nothing', async t => {
  const [one, two] = [await rawUpstream(t.after, () => {}), await rawUpstream(t.after, () => {})]
  const { url, log, changes, inFlight } = await gatewayOf(t, [one.url, two.url])
  for (let count = 1; count <= 10; count++) {
    const leaving = new AbortController()
    const call = fetch(`${url}/api/plain`, { signal: leaving.signal })
    await until('it has arrived', () => one.requests() + two.requests() === count)
    leaving.abort()
    await t.rejects(call)
  }
  const hasLeft = ({ status }: Record<string, unknown>) => status === 499
  await until('all have left', () => log.filter(hasLeft).length === 10)
  t.same(changes(), [])
  await until('nothing is in flight', async () => (await inFlight()) === '0,0')
})

for (const count of [1, 2]) {
  for (const kind of ['statuses', 'checks']) {
    t.test(`where none of ${count} works, all get requests: failing ${kind}`, async t => {
      const [isChecked, status] = kind === 'checks' ? [true, 200] : [false, 503]
      const states = await Promise.all(Array.from({ length: count }, () => healthyBackend(t)))
      for (const state of states) Object.assign(state, { status, health: 503 })
      const urls = states.map(({ backend }) => backend.url)
      const { ask, changes, became } = await gatewayOf(t, urls, isChecked ? { health } : {})
      const expected = urls.map(url => `${url} ${isChecked ? 'unhealthy' : 'open'}`)
      if (isChecked) await became(...expected)
      for (let n = 0; n < 20; n++) t.equal((await ask()).status, status)
      t.same(changes().toSorted(), expected.toSorted(), 'each said once')
      for (const { requests } of states) t.equal(requests(), 20 / count)
    })
  }
}

t.test('five failing statuses leave an address out, for one request after 10 s', async t => {
  const held: Array<() => void> = []
  let isMended = false
  const bad = await testUpstream(t.after, (_request, response) => {
    if (isMended) held.push(() => response.end())
    else response.writeHead(503).end()
  })
  const good = await testUpstream(t.after)
  const { ask, changes, became } = await gatewayOf(t, [bad.url, good.url])
  const askTen = async () => {
    for (let count = 0; count < 10; count++) await ask()
  }
  for (let count = 0; count < 5; count++) await askTen()
  t.equal(bad.seen.length, 5)
  t.same(changes(), [`${bad.url} open`])
  isMended = true
  await askTen()
  t.equal(held.length, 0, 'it is left out')
  const now = performance.now.bind(performance)
  t.after(() => Object.assign(performance, { now }))
  Object.assign(performance, { now: () => now() + 10_000 })
  const trials: Array<Promise<unknown>> = []
  await until('it is tried', () => {
    trials.push(ask())
    return held.length === 1
  })
  await askTen()
  t.equal(held.length, 1, 'others wait for what becomes of it')
  held[0]?.()
  await Promise.all(trials)
  await became(`${bad.url} closed`)
})

t.test('a name that has moved is followed within a minute', async t => {
  const port = await freePort()
  for (const host of ['127.0.0.1', '127.0.0.2']) await listenAt(t, port, host, () => host)
  let address = '127.0.0.1'
  const { lookup } = dns
  t.after(() => Object.assign(dns, { lookup }))
  const found = (_name: string, _options: object, done: (...found: unknown[]) => void) =>
    done(null, [{ address, family: 4 }])
  const { ask } = await gatewayOf(t, [`http://moving.test:${port}`])
  const answer = async () => {
    Object.assign(dns, { lookup: found })
    const { text } = await ask()
    return text
  }
  for (let count = 0; count < 3; count++) t.equal(await answer(), '127.0.0.1')
  address = '127.0.0.2'
  t.equal(await answer(), '127.0.0.1', 'connections are kept')
  const { now } = Date
  t.after(() => (Date.now = now))
  Date.now = () => now() + 61_000
  t.equal(await answer(), '127.0.0.2')
})

t.test('an address that stands still holds back no others: in flight counts', async t => {
  const release: Array<() => void> = []
  const slow = await testUpstream(t.after, (_request, response) => {
    release.push(() => response.end('slow'))
  })
  const quick = await testUpstream(t.after)
  const { ask, inFlight } = await gatewayOf(t, [slow.url, quick.url])
  const askMany = () => Array.from({ length: 20 }, () => ask())
  const first = askMany()
  const isAnswered = async () => (await inFlight()).endsWith(',0')
  await until('the quick one has answered its share', async () => {
    return quick.seen.length + release.length === 20 && (await isAnswered())
  })
  const more = askMany()
  await until('all have arrived', () => quick.seen.length + release.length === 40)
  t.ok(quick.seen.length > 22, `the slow one got ${release.length} of 40`)
  for (const answer of release) answer()
  await Promise.all([...first, ...more])
  await until('nothing is in flight', async () => (await inFlight()) === '0,0')
})

const whole = (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]')
const half = (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n[1')
const broken = (socket: Socket) => socket.destroy()

for (const [title, method, path, fault] of [
  ['a GET without an answer', 'GET', '/api/plain', broken],
  ['a HEAD without an answer', 'HEAD', '/api/plain', broken],
  ['a collected answer that breaks in the middle', 'GET', '/api/shaped', half]
] as const) {
  t.test(`asked again at another address, and once: ${title}`, async t => {
    const [bad, worse] = [await rawUpstream(t.after, fault), await rawUpstream(t.after, fault)]
    const good = await rawUpstream(t.after, whole)
    const { ask } = await gatewayOf(t, [bad.url, good.url])
    for (let count = 0; count < 20; count++) {
      const answer = await ask(method, undefined, path)
      t.equal(answer.status, 200)
      if (path === '/api/shaped') t.match(answer.json, { total: 0 }, 'never spliced')
    }
    t.equal(good.requests(), 20)
    t.ok(bad.requests() > 0)
    const before = bad.requests()
    const none = await gatewayOf(t, [bad.url, worse.url])
    t.equal((await none.ask(method, undefined, path)).status, 502)
    t.same([bad.requests() - before, worse.requests()], [1, 1])
  })
}

t.test('a kept connection that the back-end has closed loses no request', async t => {
  // As servers do after an idle time; the FIN is on its way before the request.
  const backend = await rawUpstream(t.after, socket => {
    whole(socket)
    socket.end()
  })
  const { ask } = await gatewayOf(t, [backend.url])
  for (let count = 0; count < 100; count++) t.equal((await ask('POST', 'x')).status, 200)
  t.equal(backend.requests(), 100)
})

t.test('a request that breaks at a working address is not sent to one that does not', async t => {
  let answers = 0
  const flaky = await rawUpstream(t.after, socket => {
    answers++
    if (answers === 2) socket.destroy()
    else whole(socket)
  })
  const { ask } = await gatewayOf(t, [flaky.url, await deadAddress()])
  for (let count = 0; count < 3; count++) t.equal((await ask()).status, 200)
  t.equal(answers, 4)
})

t.test('silence, a closed port and any check but 2xx leave out, until one passes', async t => {
  const [good, moved] = [await healthyBackend(t), await healthyBackend(t)]
  good.health = 299
  moved.health = 302
  const silent = await testUpstream(t.after, () => {})
  const headers = { 'x-tenant': 'acme' }
  const { url } = moved.backend
  const bad = [url, silent.url, await deadAddress()]
  const addresses = [good.backend.url, ...bad]
  const { ask, changes, became } = await gatewayOf(t, addresses, { health, headers })
  await became(...bad.map(each => `${each} unhealthy`))
  t.match(moved.backend.seen[0]?.headers, headers, 'what the upstream always gets')
  for (let count = 0; count < 50; count++) await ask()
  t.same([good.requests(), moved.requests()], [50, 0])
  moved.health = 200
  await became(`${url} healthy`)
  await until('it gets requests', async () => {
    await ask()
    return moved.requests() > 0
  })
  t.equal(changes().length, 4, 'each said once')
})

t.test('checks end with a reload that asks for none', async t => {
  const [old, other] = [await healthyBackend(t), await healthyBackend(t)]
  const first = await gatewayOf(t, [old.backend.url], { health })
  await until('it is checked', () => old.checks() > 2)
  const file = join(first.folder, 'routes.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/ +health:\n(?: {6}.*\n)+/, ''))
  t.match(await first.reload('operator'), { outcome: 'reloaded' })
  await gatewayOf(t, [other.backend.url], { health })
  await until('no check comes while another one is checked five times', async () => {
    const [before, others] = [old.checks(), other.checks()]
    await until('another one is checked', () => other.checks() > others + 5)
    return old.checks() === before
  })
  t.same(first.changes(), [])
})
