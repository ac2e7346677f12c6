/** Names and what they stand for: an injected look-up, and a DNS server on loopback. */
import t, { type Test } from 'tap'
import { paired, type Lookup } from '../../src/proxy/resolver.ts'
import { createUpstream } from '../../src/proxy/upstream.ts'
import { dnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/ports.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { upstreamConfig } from '../support/upstream-config.ts'

function upstreamOf(t: Test, written: Record<string, unknown>, lookup?: Lookup) {
  const moves: Array<readonly string[]> = []
  const failures: string[] = []
  const upstream = createUpstream(upstreamConfig(t.after, written), {
    ...(lookup && { lookup }),
    events: {
      onTransition: () => {},
      onMoved: labels => moves.push(labels),
      onUnresolved: name => failures.push(name),
      onRetry: () => {},
      onWaited: () => {}
    }
  })
  t.after(() => upstream.close())
  const ask = (method = 'GET') =>
    upstream.fetchWhole({ method, path: '/x', headers: {}, timeoutMs: 5000, maxBytes: 1000 })
  const labels = () => upstream.addresses().map(({ label }) => label)
  return { upstream, ask, moves, failures, labels }
}

t.test('the families of a name are paired: each replica has one of each at most', async t => {
  t.same(paired(['::1', '127.0.0.1']), [['::1', '127.0.0.1']])
  t.same(paired(['10.0.0.2', '10.0.0.1', '10.0.0.2']), [['10.0.0.1'], ['10.0.0.2']])
  t.same(paired(['10.0.0.1', '10.0.0.2', 'fd00::1']), [['fd00::1', '10.0.0.1'], ['10.0.0.2']])
  t.same(paired([]), [])
  const many = Array.from({ length: 500 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
  t.equal(paired(many).length, 100, 'bounded')
})

t.test('a name becomes its addresses; Host stays the name', async t => {
  const backend = await testUpstream(t.after)
  const { port } = new URL(backend.url)
  const url = `http://orders.internal:${port}`
  const { ask, labels } = upstreamOf(t, { url }, async () => [{ address: '127.0.0.1' }])
  await until('it is resolved', () => labels()[0] === `${url} at 127.0.0.1`)
  t.match(await ask('POST'), { status: 200 })
  t.equal(backend.seen[0]?.headers.host, `orders.internal:${port}`)
})

t.test('where one family is dead, no request fails', async t => {
  const backend = await testUpstream(t.after)
  const { port } = new URL(backend.url)
  // Nothing listens on ::1, and nothing answers at 2001:db8:: (for documentation alone).
  for (const dead of ['::1', '2001:db8::1']) {
    const { ask, labels } = upstreamOf(t, { url: `http://two.internal:${port}` }, async () => [
      { address: dead },
      { address: '127.0.0.1' }
    ])
    await until('it is resolved', () => labels()[0]?.includes(`[${dead}] or 127.0.0.1`) === true)
    for (let count = 0; count < 3; count++) t.match(await ask('POST'), { status: 200 })
  }
})

t.test('a look-up that fails leaves the addresses as they are, and is told once', async t => {
  const backend = await testUpstream(t.after)
  const { port } = new URL(backend.url)
  let isDown = false
  let asked = 0
  const { ask, labels, failures, moves } = upstreamOf(
    t,
    { url: `http://b.internal:${port}`, dns: { interval: '1s' } },
    async () => {
      asked++
      if (isDown) throw new Error('SERVFAIL')
      return [{ address: '127.0.0.1' }]
    }
  )
  await until('it is resolved', () => labels()[0]?.includes('127.0.0.1') === true)
  isDown = true
  await until('it failed twice', () => asked > 2)
  t.match(await ask(), { status: 200 })
  t.same(moves, [])
  t.ok(failures.length > 0)
})

t.test('a name that cannot be resolved at all is answered 502', async t => {
  const { ask } = upstreamOf(t, { url: 'http://nowhere.invalid:1' }, async () => {
    throw new Error('ENOTFOUND')
  })
  await t.rejects(ask(), { code: 'upstream.refused' })
})

/** Asks without a pause until it is stopped. @returns what failed */
function load(ask: (method: string) => Promise<{ readonly status: number }>) {
  const over = new AbortController()
  let count = 0
  const failed: unknown[] = []
  const one = async () => {
    while (!over.signal.aborted) {
      const method = count++ % 2 === 0 ? 'GET' : 'POST'
      await ask(method).catch((error: unknown) => failed.push(error))
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  const running = Promise.all(Array.from({ length: 8 }, one))
  return {
    stop: async () => {
      over.abort()
      await running
      return { count, failed }
    }
  }
}

t.test('a rolling move by look-up loses no request', async t => {
  const [first, second] = [await testUpstream(t.after), await testUpstream(t.after)]
  // Two addresses on one port: the second back-end listens on another of loopback.
  const port = Number(new URL(first.url).port)
  const { createServer } = await import('node:http')
  let answered = 0
  const moved = createServer((_request, response) => {
    answered++
    response.end('moved')
  })
  await new Promise<void>(resolve => moved.listen(port, '127.0.0.2', resolve))
  t.after(() => {
    moved.closeAllConnections()
    moved.close()
  })
  let answer = [{ address: '127.0.0.1' }]
  const { ask, labels, moves } = upstreamOf(
    t,
    { url: `http://b.internal:${port}`, dns: { interval: '1s' } },
    async () => answer
  )
  await until('it is resolved', () => labels()[0]?.includes('127.0.0.1') === true)
  const traffic = load(ask)
  await until('the first answers', () => first.seen.length > 50)
  answer = [{ address: '127.0.0.2' }]
  await until('the second answers', () => answered > 50)
  await first.close()
  const before = answered
  await until('it goes on', () => answered > before + 50)
  const { count, failed } = await traffic.stop()
  t.same(failed, [], `of ${count}`)
  t.equal(moves.length, 1)
  t.equal(second.seen.length, 0)
})

t.test('a rolling move by records of DNS loses no request, at their own time to live', async t => {
  const dns = await dnsServer(t.after)
  const backend = await testUpstream(t.after)
  const port = Number(new URL(backend.url).port)
  dns.zone.set('b.test', { a: ['127.0.0.1'] })
  const { ask, labels } = upstreamOf(t, {
    url: `http://b.test:${port}`,
    dns: { records: 'a', interval: '1h', servers: [dns.address] }
  })
  await until('it is resolved', () => labels()[0]?.includes('127.0.0.1') === true)
  const traffic = load(ask)
  dns.zone.set('b.test', { a: ['127.0.0.1', '127.0.0.3'] })
  await until('both are known', () => labels().length === 2)
  dns.isSilent = true
  const asked = dns.questions()
  await until('it asked in vain', () => dns.questions() > asked)
  t.equal(labels().length, 2, 'silence changes nothing')
  dns.isSilent = false
  dns.zone.set('b.test', { a: ['127.0.0.1'] })
  await until('one is left', () => labels().length === 1)
  const { failed } = await traffic.stop()
  t.same(failed, [], 'nothing listens on 127.0.0.3: those went to the other')
})

t.test('services: ports, weights and priority of SRV records', async t => {
  const dns = await dnsServer(t.after)
  const [one, two] = [await testUpstream(t.after), await testUpstream(t.after)]
  const spare = await freePort()
  dns.zone.set('one.test', { a: ['127.0.0.1'] })
  dns.zone.set('_http._tcp.b.test', {
    srv: [
      { name: 'one.test', port: Number(new URL(one.url).port), weight: 3 },
      { name: 'one.test', port: Number(new URL(two.url).port), weight: 1 },
      { name: 'one.test', port: spare, priority: 5 },
      { name: 'missing.test', port: spare }
    ]
  })
  const { ask, labels } = upstreamOf(t, {
    url: 'http://_http._tcp.b.test',
    dns: { records: 'srv', servers: [dns.address] }
  })
  await until('it is resolved', () => labels().length === 2)
  for (let count = 0; count < 200; count++) t.match(await ask(), { status: 200 })
  t.equal(one.seen.length + two.seen.length, 200)
  t.ok(one.seen.length > 2 * two.seen.length, `${one.seen.length} and ${two.seen.length}`)
  t.equal(one.seen[0]?.headers.host, '_http._tcp.b.test')
})
