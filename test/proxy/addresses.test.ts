/** An upstream of several addresses, over real sockets. */
import { Readable } from 'node:stream'
import dns from 'node:dns'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { freePort } from '../support/ports.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'
import { sendStreamed, trackedUpstream } from '../support/tracked-upstream.ts'
import { until } from '../support/until.ts'

type Written = Record<string, unknown>

function upstreamOf(t: Test, written: Written) {
  const { upstream, transitions } = trackedUpstream(t.after, written)
  const ask = (method = 'GET', body?: string) =>
    upstream.fetchWhole({
      method,
      path: '/x',
      headers: {},
      timeoutMs: 5000,
      maxBytes: 1000,
      ...(body !== undefined && { body })
    })
  return { upstream, ask, transitions }
}

const openForMs = 10_000

function skipTime(t: Test, ms: number): void {
  const now = performance.now.bind(performance)
  t.after(() => Object.assign(performance, { now }))
  Object.assign(performance, { now: () => now() + ms })
}

const silentPort = async (t: Test) => {
  const { url } = await rawUpstream(t.after, () => {})
  return url
}

t.test('all addresses get requests, each with its own Host', async t => {
  const backends = await Promise.all([testUpstream(t.after), testUpstream(t.after)])
  const { ask } = upstreamOf(t, { url: backends.map(({ url }) => url) })
  for (let count = 0; count < 60; count++) await ask()
  for (const { seen, url } of backends) {
    t.ok(seen.length > 10, `${seen.length}`)
    t.ok(seen.every(({ headers }) => headers.host === new URL(url).host))
  }
})

t.test('a request of any method goes on to another address where one refuses', async t => {
  const backend = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const { ask, transitions } = upstreamOf(t, { url: [dead, backend.url] })
  for (let count = 0; count < 20; count++) {
    t.match(await ask(count % 2 === 0 ? 'POST' : 'GET', 'body'), { status: 200 })
  }
  t.equal(backend.seen.length, 20)
  t.ok(backend.seen.every(({ body }) => body.toString() === 'body'))
  t.equal(transitions[0], `${dead} open`)
})

t.test('a streamed upload goes on to another address with its whole body', async t => {
  const backend = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const bytes = Buffer.alloc(300_000, 'upload ')
  for (let round = 0; round < 6; round++) {
    const { upstream } = upstreamOf(t, { url: [dead, backend.url] })
    const headers = { 'content-length': String(bytes.length) }
    const chunks = [bytes.subarray(0, 100_000), bytes.subarray(100_000)]
    const body = Object.assign(Readable.from(chunks), { received: bytes.length })
    const request = { method: 'POST', path: '/', headers, body }
    const response = await sendStreamed(upstream, request)
    t.match(response, { status: 200 })
  }
  t.ok(
    backend.seen.every(({ body }) => body.equals(bytes)),
    'each arrived whole'
  )
  t.equal(backend.seen.length, 6)
})

t.test('an address that refused gets requests again once it listens, without one lost', async t => {
  const backend = await testUpstream(t.after)
  const port = await freePort()
  const dead = `http://127.0.0.1:${port}`
  const { ask, transitions } = upstreamOf(t, { url: [dead, backend.url] })
  await until('it is left out', async () => {
    await ask()
    return transitions.includes(`${dead} open`)
  })
  let answers = 0
  const server = createServer((_request, response) => {
    answers++
    response.end('late')
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  skipTime(t, openForMs)
  await until('it answers', async () => {
    t.match(await ask('POST', 'x'), { status: 200 })
    return answers > 0
  })
  t.same(transitions, [`${dead} open`, `${dead} closed`])
})

t.test('failing statuses, breaks and silence leave an address out; the rest answers', async t => {
  const good = await testUpstream(t.after)
  const bad = await testUpstream(t.after, json(503, {}))
  const { ask, transitions } = upstreamOf(t, { url: [bad.url, good.url] })
  for (let count = 0; count < 100; count++) await ask()
  t.equal(bad.seen.length, 5, 'five failures, and no more')
  t.same(transitions, [`${bad.url} open`])

  const silent = await silentPort(t)
  const { upstream, transitions: silences } = upstreamOf(t, { url: [silent, good.url] })
  await until('the silent one is left out', async () => {
    const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 20, maxBytes: 1000 }
    await upstream.fetchWhole(options).catch(() => {})
    return silences.includes(`${silent} open`)
  })
})

t.test('what the client does counts for nothing', async t => {
  const [silent, other] = [await silentPort(t), await silentPort(t)]
  const { upstream, transitions } = upstreamOf(t, { url: [silent, other] })
  for (let count = 0; count < 30; count++) {
    const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 5000, maxBytes: 1000 }
    const leaving = AbortSignal.timeout(5)
    await t.rejects(upstream.fetchWhole({ ...options, signal: leaving }))
  }
  t.same(transitions, [])
  for (const { inFlight } of upstream.addresses) t.equal(inFlight, 0)
})

t.test('the only address gets requests whatever became of the last ones', async t => {
  const bad = await testUpstream(t.after, json(503, {}))
  const { ask, transitions } = upstreamOf(t, { url: bad.url })
  for (let count = 0; count < 20; count++) t.match(await ask(), { status: 503 })
  t.same(transitions, [`${bad.url} open`], 'said once')
})

t.test('where no address works all get requests', async t => {
  const backends = await Promise.all([1, 2].map(() => testUpstream(t.after, json(503, {}))))
  const { ask, transitions } = upstreamOf(t, { url: backends.map(({ url }) => url) })
  for (let count = 0; count < 20; count++) t.match(await ask(), { status: 503 })
  t.equal(transitions.length, 2)
  for (const { seen } of backends) t.equal(seen.length, 10)
})

t.test(
  'an address that is left out gets one request after 10 seconds, until that works',
  async t => {
    const held: Array<() => void> = []
    let status = 503
    const bad = await testUpstream(t.after, (_request, response) => {
      held.push(() => response.writeHead(status).end())
    })
    const good = await testUpstream(t.after)
    const { ask, transitions } = upstreamOf(t, { url: [bad.url, good.url] })
    const asked = Array.from({ length: 10 }, () => ask())
    await until('it has its share', () => held.length === 5)
    for (const answer of held.splice(0)) answer()
    await Promise.all(asked)
    t.same(transitions, [`${bad.url} open`])
    status = 200
    await ask()
    t.equal(held.length, 0, 'it is left out')
    skipTime(t, openForMs)
    const trials: Array<Promise<unknown>> = []
    await until('it is tried', () => {
      trials.push(ask())
      return held.length === 1
    })
    for (let count = 0; count < 10; count++) await ask()
    t.equal(held.length, 1, 'others wait for what becomes of it')
    held[0]?.()
    await Promise.all(trials)
    t.same(transitions, [`${bad.url} open`, `${bad.url} closed`])
  }
)

t.test('a request that breaks at a working address is not sent to one that does not', async t => {
  let answers = 0
  const flaky = await rawUpstream(t.after, socket => {
    answers++
    if (answers === 2) socket.destroy()
    else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  })
  const dead = `http://127.0.0.1:${await freePort()}`
  const { ask } = upstreamOf(t, { url: [dead, flaky.url] })
  for (let count = 0; count < 3; count++) t.match(await ask(), { status: 200 })
  t.equal(answers, 4)
})

t.test('a name that has moved is followed within a minute', async t => {
  const port = await freePort()
  const answering = async (address: string) => {
    const server = createServer((_request, response) => response.end(address))
    await new Promise<void>(resolve => server.listen(port, address, resolve))
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
  }
  await Promise.all(['127.0.0.1', '127.0.0.2'].map(answering))
  let place = '127.0.0.1'
  const { lookup } = dns
  t.after(() => Object.assign(dns, { lookup }))
  Object.assign(dns, {
    lookup: (_name: string, _options: object, done: (...found: unknown[]) => void) =>
      done(null, [{ address: place, family: 4 }])
  })
  const { ask } = upstreamOf(t, { url: `http://moving.test:${port}` })
  const answer = async () => (await ask()).body.toString()
  for (let count = 0; count < 3; count++) t.equal(await answer(), '127.0.0.1')
  place = '127.0.0.2'
  t.equal(await answer(), '127.0.0.1', 'connections are kept')
  const { now } = Date
  t.after(() => (Date.now = now))
  Date.now = () => now() + 61_000
  t.equal(await answer(), '127.0.0.2')
})

t.test('addresses that stand still hold back no others: in flight counts', async t => {
  const release: Array<() => void> = []
  const slow = await testUpstream(t.after, (_request, response) => {
    release.push(() => response.end('slow'))
  })
  const quick = await testUpstream(t.after)
  const { ask, upstream } = upstreamOf(t, { url: [slow.url, quick.url] })
  const held: Array<Promise<unknown>> = []
  for (let count = 0; count < 60; count++) {
    const asking = ask()
    held.push(asking)
    const answered = quick.seen.length
    await until('it arrived', () => quick.seen.length > answered || slow.begun() === release.length)
    await Promise.race([asking, new Promise(resolve => setImmediate(resolve))])
  }
  await until('the quick one answered', () => quick.seen.length + release.length === 60)
  t.ok(release.length < 20, `the slow one got ${release.length} of 60`)
  for (const answer of release) answer()
  await Promise.all(held)
  for (const { inFlight } of upstream.addresses) t.equal(inFlight, 0)
})
