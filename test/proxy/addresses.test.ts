/** An upstream of several addresses, over real sockets. */
import { Readable } from 'node:stream'
import { createServer } from 'node:http'
import { createServer as createRawServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort, listen } from '../support/ports.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'
import { dispatchStreamed, trackedUpstream } from '../support/tracked-upstream.ts'
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

const silentPort = async (t: Test) => {
  const { url } = await rawUpstream(t.after, () => {})
  return url
}

t.test('all addresses get requests, each with its own Host', async t => {
  const backends = await Promise.all([testUpstream(t.after), testUpstream(t.after)])
  const { ask } = upstreamOf(t, { urls: backends.map(({ url }) => url) })
  for (let count = 0; count < 60; count++) await ask()
  for (const { seen, url } of backends) {
    t.ok(seen.length > 10, `${seen.length}`)
    t.ok(seen.every(({ headers }) => headers.host === new URL(url).host))
  }
})

t.test('a request of any method goes on to another address where one refuses', async t => {
  const backend = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const { ask, transitions } = upstreamOf(t, { urls: [dead, backend.url] })
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
    const { upstream } = upstreamOf(t, { urls: [dead, backend.url] })
    const headers = { 'content-length': String(bytes.length) }
    const body = Readable.from([bytes.subarray(0, 100_000), bytes.subarray(100_000)])
    const request = { method: 'POST', path: '/', headers, body }
    const response = await dispatchStreamed(upstream, request)
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
  const { ask, transitions } = upstreamOf(t, {
    urls: [dead, backend.url],
    breaker: { openFor: '20ms', maxOpenFor: '50ms', slowStart: '0ms' }
  })
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
  await until('it answers', async () => {
    t.match(await ask('POST', 'x'), { status: 200 })
    return answers > 0
  })
  t.ok(transitions.includes(`${dead} trial`))
  t.ok(transitions.includes(`${dead} closed`))
})

t.test('failing statuses, breaks and silence leave an address out; the rest answers', async t => {
  const good = await testUpstream(t.after)
  const bad = await testUpstream(t.after, json(503, {}))
  const { ask, transitions } = upstreamOf(t, { urls: [bad.url, good.url] })
  for (let count = 0; count < 100; count++) await ask()
  t.equal(bad.seen.length, 5, 'five failures, and no more')
  t.same(transitions, [`${bad.url} open`])

  const own = upstreamOf(t, { urls: [bad.url, good.url], breaker: { statuses: [] } })
  for (let count = 0; count < 30; count++) await own.ask()
  t.same(own.transitions, [], 'no status counts')

  const silent = await silentPort(t)
  const { upstream, transitions: silences } = upstreamOf(t, {
    urls: [silent, good.url],
    breaker: { failures: 2 }
  })
  await until('the silent one is left out', async () => {
    const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 20, maxBytes: 1000 }
    await upstream.fetchWhole(options).catch(() => {})
    return silences.includes(`${silent} open`)
  })
})

t.test('what the client does counts for nothing', async t => {
  const [silent, other] = [await silentPort(t), await silentPort(t)]
  const { upstream, transitions } = upstreamOf(t, {
    urls: [silent, other],
    breaker: { failures: 1 }
  })
  for (let count = 0; count < 10; count++) {
    const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 5000, maxBytes: 1000 }
    const leaving = AbortSignal.timeout(5)
    await t.rejects(upstream.fetchWhole({ ...options, signal: leaving }))
  }
  t.same(transitions, [])
  for (const { inFlight } of upstream.addresses()) t.equal(inFlight, 0)
})

t.test('the only address answers 503 at once after five refusals, and is found again', async t => {
  const port = await freePort()
  const openFor = async (time: string) => {
    const { ask, transitions } = upstreamOf(t, {
      url: `http://127.0.0.1:${port}`,
      breaker: { openFor: time }
    })
    const code = 'upstream.refused'
    for (let count = 0; count < 5; count++) await t.rejects(ask('POST'), { code })
    return { ask, transitions }
  }
  const { ask: askSoon, transitions } = await openFor('30m')
  const { ask } = await openFor('100ms')
  await t.rejects(askSoon('POST'), { code: 'upstream.unavailable', detail: { retryAfter: Number } })
  t.equal(transitions.length, 1)
  const server = createServer((_request, response) => response.end('back'))
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await until('it answers', async () => (await ask('POST')).status === 200)
})

t.test('the only address stays closed whatever it answers', async t => {
  const bad = await testUpstream(t.after, json(503, {}))
  const { ask, transitions } = upstreamOf(t, { url: bad.url })
  for (let count = 0; count < 20; count++) t.match(await ask(), { status: 503 })
  t.same(transitions, [])
})

t.test('addresses that stand still hold back no others: in flight counts', async t => {
  const release: Array<() => void> = []
  const slow = await testUpstream(t.after, (_request, response) => {
    release.push(() => response.end('slow'))
  })
  const quick = await testUpstream(t.after)
  const { ask, upstream } = upstreamOf(t, { urls: [slow.url, quick.url] })
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
  for (const { inFlight } of upstream.addresses()) t.equal(inFlight, 0)
})

/** Takes connections, and cuts each before TLS has begun. */
async function cuttingPort(t: Test, afterMs: number): Promise<string> {
  const server = createRawServer(socket => {
    socket.on('error', () => {}).resume()
    setTimeout(() => socket.destroy(), afterMs)
  })
  t.after(() => server.close())
  return `https://127.0.0.1:${await listen(server)}`
}

const quickBreaker = { openFor: '20ms', maxOpenFor: '40ms' }

t.test('a request that leaves takes nothing from a trial that it did not begin', async t => {
  const urls = [await cuttingPort(t, 60), await cuttingPort(t, 60)]
  const { upstream, ask, transitions } = upstreamOf(t, { urls, breaker: quickBreaker })
  const trials = (url: string) => transitions.filter(each => each === `${url} trial`).length
  await t.rejects(ask())
  for (const url of urls) {
    await until('it tries itself', () => trials(url) > 0)
    const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 5000, maxBytes: 1000 }
    // Where most addresses are out all get requests, also one that tries itself.
    const leaving = Array.from({ length: 8 }, () =>
      upstream.fetchWhole({ ...options, signal: AbortSignal.timeout(10) }).catch(() => {})
    )
    await Promise.all(leaving)
  }
  for (const url of urls) {
    const before = trials(url)
    await until('it tries itself again', () => trials(url) > before + 1)
  }
})

t.test('an address that nobody has any more tries itself no more', async t => {
  const url = await cuttingPort(t, 30)
  const duringTrial = upstreamOf(t, { urls: [url], breaker: quickBreaker })
  await until('it is open', async () => {
    await duringTrial.ask().catch(() => {})
    return duringTrial.transitions.includes(`${url} open`)
  })
  await until('it tries itself', () => duringTrial.transitions.at(-1) === `${url} trial`)
  const known = duringTrial.transitions.length
  await duringTrial.upstream.retire()

  const duringRequests = upstreamOf(t, { urls: [url], breaker: quickBreaker })
  const asked = Array.from({ length: 5 }, () => duringRequests.ask().catch(() => {}))
  await duringRequests.upstream.retire()
  await Promise.all(asked)

  // Long enough for five more trials.
  await wait(500)
  t.same(duringTrial.transitions.slice(known), [`${url} open`])
  t.same(duringRequests.transitions, [`${url} open`])
})
