/**
 * Each vice of a back-end: the response that the client sees, the next request on a connection of
 * its own, and nothing left of the exchange.
 */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { misbehavingUpstream } from '../support/misbehaving.ts'
import { raw, type RawAnswer, request } from '../support/raw.ts'
import { shorterTimes } from '../support/shorter-times.ts'
import { until } from '../support/until.ts'
import { rawUpstream } from '../support/upstream.ts'
import { answersBegun, isEnvelope, open, wireRoutes } from '../support/wire.ts'

// Of the pause of an event stream.
shorterTimes(t.after, { [5 * 60_000]: 2000 })
const upstream = await misbehavingUpstream(t.after)
const otherName = await misbehavingUpstream(t.after, { tlsName: 'other.example' })
/** Takes connections, and answers no handshake: it waits for the end of a head. */
const noTls = await rawUpstream(t.after, () => {})
const gateway = await testGateway(t.after, {
  gateway: { server: { idleTimeout: '600ms' } },
  limits: {
    sizes: { shape: '256KiB' },
    limits: { generous: { by: 'user', max: 100_000, window: '1m' } }
  },
  routes: {
    ...wireRoutes(
      upstream.url,
      {},
      {
        shaped: {
          path: '/api/shaped/*',
          access: 'public',
          upstream: 'backend',
          rewrite: '/*',
          shape: 'same'
        },
        tls: { path: '/api/tls/*', access: 'public', upstream: 'other-name' },
        handshake: { path: '/api/handshake', access: 'public', upstream: 'no-tls' },
        total: {
          path: '/api/total/*',
          access: 'public',
          upstream: 'hasty',
          rewrite: '/*'
        },
        unbound: {
          path: '/api/unbound/*',
          access: 'public',
          upstream: 'patient',
          rewrite: '/*'
        }
      }
    ),
    upstreams: {
      'backend': {
        url: upstream.url,
        responseTimeout: '1500ms',
        totalTimeout: '3s'
      },
      'hasty': { url: upstream.url, responseTimeout: '30s', totalTimeout: '500ms' },
      'patient': { url: upstream.url, responseTimeout: '1m', totalTimeout: '1m' },
      'no-tls': { url: noTls.url.replace('http', 'https'), connectTimeout: '300ms' },
      'other-name': { url: otherName.url, responseTimeout: '3s' }
    },
    shapes: { same: [{ drop: ['nothing'] }] }
  }
})

/** The bytes that come back for a request on a connection of its own. */
async function ask(target: string): Promise<RawAnswer> {
  return await raw(gateway.url, request(`GET ${target}`, ['Connection: close']), {
    enough: () => false
  })
}

async function metric(name: string): Promise<number> {
  const text = await (await gateway.ops('/metrics')).text()
  return Number(new RegExp(`^${name}\\{upstream="backend"\\} (\\d+)$`, 'm').exec(text)?.[1])
}

/** The next request is answered with what belongs to it, and nothing runs any more. */
async function isFineAgain(t: { equal: (one: unknown, other: unknown, what: string) => unknown }) {
  const { status, body } = await ask('/api/open/fine')
  t.equal(`${status} ${body}`, '200 {"fine":true}', 'the next request is answered')
  await until('the back-end has nothing in flight', () => upstream.inFlight() === 0)
  await until(
    'the gateway has nothing in flight',
    async () => (await metric('console_gateway_upstream_in_flight')) === 0
  )
}

/** The vices that cost the client its response, by target: status and code. */
const refused: Readonly<Record<string, readonly [target: string, status: number, code: string]>> = {
  'a slow first byte': ['/api/open/slow?ms=5000', 504, 'upstream.timeout'],
  'silence': ['/api/open/silent', 504, 'upstream.timeout'],
  'a small response that is cut': ['/api/open/truncated', 502, 'upstream.reset'],
  'a small response that is reset': ['/api/open/reset', 502, 'upstream.reset'],
  'a reset without a response': ['/api/open/reset?bytes=0', 502, 'upstream.reset'],
  'two lengths': ['/api/open/two-lengths', 502, 'upstream.invalid'],
  'invalid HTTP': ['/api/open/invalid', 502, 'upstream.invalid'],
  'a drip that is shaped': ['/api/shaped/drip?everyMs=50', 504, 'upstream.timeout.total'],
  'a stalled body that is shaped': ['/api/shaped/stalls', 504, 'upstream.timeout.idle'],
  'a first byte later than the whole may be': [
    '/api/total/slow?ms=5000',
    504,
    'upstream.timeout.total'
  ],
  'a gzip bomb that is shaped': ['/api/shaped/gzip-bomb', 502, 'shape.too-large'],
  'an endless response that is shaped': ['/api/shaped/endless', 502, 'shape.too-large'],
  'a connection that is not made in time': ['/api/handshake', 504, 'upstream.timeout.connect'],
  'TLS of another name': ['/api/tls/fine', 502, 'upstream.refused']
}

for (const [title, [target, status, code]] of Object.entries(refused)) {
  t.test(`${title}: ${status} ${code}, and the next request is fine`, async t => {
    const response = await ask(target)
    t.equal(response.status, status)
    t.equal(answersBegun(response.whole), 1)
    isEnvelope(t, response.body)
    t.equal((JSON.parse(response.body) as { errorCode: string }).errorCode, code)
    await isFineAgain(t)
  })
}

/** The vices that show when bytes have gone to the client already: the code of the log line. */
const cut: Readonly<Record<string, readonly [target: string, code: string]>> = {
  'a large response that is cut': ['/api/open/truncated?length=400000', 'upstream.reset'],
  'a large response that is reset': ['/api/open/reset?bytes=200000', 'upstream.reset'],
  'a response that stalls': ['/api/open/stalls', 'upstream.timeout.idle'],
  'an event stream that stalls': [
    '/api/open/stalls?type=text/event-stream',
    'upstream.timeout.idle'
  ],
  'a response that drips': ['/api/open/drip?everyMs=50', 'upstream.timeout.total'],
  'a response that drips after a good start': [
    '/api/open/drip?everyMs=50&bytes=100000',
    'upstream.timeout.total'
  ],
  'a response that takes too long as a whole': [
    '/api/total/drip?everyMs=5',
    'upstream.timeout.total'
  ],
  'an endless response that takes too long': ['/api/total/endless', 'upstream.timeout.total']
}

for (const [title, [target, code]] of Object.entries(cut)) {
  t.test(`${title}: the connection is cut, and the log line has ${code}`, async t => {
    const from = gateway.log.length
    const { status, whole, head, body, closed } = await ask(target)
    t.equal(status, 200)
    t.ok(closed)
    t.equal(answersBegun(whole), 1)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Infinity)
    t.ok(body.length < length && !body.endsWith('0\r\n\r\n'), 'not whole')
    const line = await gateway.logged(({ msg }) => msg === 'request', from)
    t.match(line, { path: target.replace(/\?.*/, ''), code })
    await isFineAgain(t)
  })
}

t.test('ten drips at once do not keep the connections of an upstream', async t => {
  const began = performance.now()
  const drips = Array.from({ length: 10 }, () => ask('/api/open/drip?everyMs=500'))
  await until('all drip', () => upstream.inFlight() === 10)
  for (const { status, closed } of await Promise.all(drips)) t.same([status, closed], [200, true])
  t.ok(performance.now() - began < 20_000)
  await isFineAgain(t)
})

t.test('where an upstream sets longer waits, a drip goes on; so do events', async t => {
  const lines = await Promise.all(
    [
      '/api/unbound/drip?everyMs=400',
      '/api/unbound/stalls',
      '/api/open/drip?everyMs=400&type=text/event-stream'
    ].map(async target => {
      const line = await open(t.after, gateway.url)
      line.socket.write(request(`GET ${target}`))
      return line
    })
  )
  // As long as what ends others.
  await ask('/api/open/drip?everyMs=50')
  t.same(
    lines.map(line => line.isClosed()),
    [false, false, false]
  )
  for (const line of lines) line.socket.destroy()
  await isFineAgain(t)
})

t.test('a slow reader is not taken for a slow back-end', async t => {
  const from = gateway.log.length
  const line = await open(t.after, gateway.url)
  line.socket.write(request('GET /api/unbound/endless'))
  await line.until(received => received.length > 2 ** 20)
  // Reads a little now and then: what the gateway holds back is the back-end's no fault.
  const deadline = performance.now() + 3000
  while (performance.now() < deadline) {
    line.socket.pause()
    await new Promise(resolve => setTimeout(resolve, 200))
    const before = line.received().length
    line.socket.resume()
    await line.until(received => received.length > before)
  }
  t.notOk(line.isClosed())
  line.socket.pause()
  t.match(await gateway.logged(({ msg }) => msg === 'request', from), {
    status: 499,
    code: 'request.timeout'
  })
  line.socket.destroy()
  await isFineAgain(t)
})

t.test('an endless response ends with its reader', async t => {
  const line = await open(t.after, gateway.url)
  line.socket.write(request('GET /api/open/endless'))
  await line.until(received => received.length > 2 ** 20)
  t.match(line.received(), /^HTTP\/1\.1 200 /)
  line.socket.destroy()
  await isFineAgain(t)
})

t.test('kept connections that are closed at random cost no GET', async t => {
  const statuses = new Map<number, number>()
  for (let turn = 0; turn < 100; turn++) {
    const { status } = await gateway.call('/api/open/closes-kept')
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.ok(upstream.closedKept() > 10, `${upstream.closedKept()} closed, seed ${upstream.seed}`)
  t.same([...statuses], [[200, 100]], `seed ${upstream.seed}`)
  await isFineAgain(t)
})

t.test('a restart: 502 while it is down, and the first request afterwards is fine', async t => {
  const held = gateway.call('/api/open/slow?ms=200')
  await until('a request is in flight', () => upstream.inFlight() === 1)
  await upstream.stop()
  t.match(await held, { status: 502 })
  t.match(await gateway.call('/api/open/fine'), {
    status: 502,
    json: { errorCode: 'upstream.refused' }
  })
  await upstream.start()
  await isFineAgain(t)
})

t.end()
