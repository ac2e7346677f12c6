/** Uploads in chunks: slow and broken ones hold no connection that others need. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { rawUpstream, testUpstream } from '../support/upstream.ts'
import { loginPath, open, openWire, wireRoutes } from './support.ts'

const fields = ['Transfer-Encoding: chunked', 'Content-Type: text/plain']
const chunk = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
const limits = { limits: { all: { by: 'address', max: 1_000_000, window: '1h' } } }

t.test('a body in chunks up to 64 KiB is whole before the upstream is asked', async t => {
  const wire = await openWire(t.after)
  const line = await open(t.after, wire.gateway.url)
  line.socket.write(request('POST /api/open/x', fields, chunk(60_000)))
  await wire.gateway.call('/api/open/other')
  t.equal(wire.backend.begun(), 1, 'only the other one')
  line.socket.write(`${chunk(5536)}0\r\n\r\n`)
  t.match(await line.until(text => text.includes('\r\n\r\n')), /^HTTP\/1\.1 200 /)
  const { body, headers } = wire.backend.seen.at(-1) ?? {}
  t.equal(body?.length, 65_536)
  t.equal(headers?.['content-length'], '65536')
})

t.test('many small chunks arrive as they were sent', async t => {
  const wire = await openWire(t.after)
  for (const count of [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 70_000]) {
    const chunks = '1\r\nx\r\n'.repeat(count)
    const bytes = request('POST /api/open/x', fields, `${chunks}0\r\n\r\n`)
    const answer = await raw(wire.gateway.url, bytes)
    t.equal(answer.status, 200, `${count}`)
    t.equal(wire.backend.seen.at(-1)?.body.length, count)
  }
})

t.test('the start of a small malformed body never reaches the upstream', async t => {
  const wire = await openWire(t.after)
  for (let n = 0; n < 40; n++) {
    const bytes = request('POST /api/open/x', fields, `${chunk(1 + n * 1000)}zz\r\n`)
    const { status } = await raw(wire.gateway.url, bytes, { enough: () => false })
    t.equal(status, 400)
  }
  t.equal(wire.backend.begun(), 0)
})

t.test('a malformed tail behind more than 64 KiB aborts the request to the upstream', async t => {
  const wire = await openWire(t.after)
  for (const tail of ['zz\r\n', '-1\r\n', '5\r\nhelloX']) {
    const begun = wire.backend.begun()
    const line = await open(t.after, wire.gateway.url)
    line.socket.write(request('POST /api/open/x', fields, chunk(150_000)))
    await until('the upstream sees its start', () => wire.backend.begun() === begun + 1)
    line.socket.write(tail)
    await line.closed
    t.notMatch(line.received(), /^HTTP\/1\.1 2/, tail)
  }
  await wire.backend.aborted()
  await until('no connection is left with a part', async () => {
    await wire.backend.idle()
    return true
  })
  t.equal(wire.backend.seen.length, 0, 'nothing whole')
})

t.test('slow bodies in chunks take no connection, whoever they are from', async t => {
  const upstream = await testUpstream(t.after)
  const routes = wireRoutes(upstream.url, { connections: 4, queue: 4 })
  const gateway = await testGateway(t.after, { limits, routes })
  const lines = await Promise.all(Array.from({ length: 40 }, () => open(t.after, gateway.url)))
  for (const line of lines) line.socket.write(request('POST /api/open/slow', fields, chunk(10)))
  for (let n = 0; n < 20; n++) t.equal((await gateway.call('/api/open/quick')).status, 200)
  t.same([...new Set(upstream.seen.map(({ url }) => url))], ['/public/quick'])
})

t.test('an upload whose upstream fails half-way is answered at once', async t => {
  const upstream = await rawUpstream(t.after, () => {})
  const routes = wireRoutes(upstream.url, { responseTimeout: '300ms' })
  const gateway = await testGateway(t.after, { limits, routes })
  for (const bytes of [
    request('POST /api/open/large', fields, chunk(80_000)),
    request('POST /api/open/long', ['Content-Length: 400000', 'Content-Type: text/plain'], 'x')
  ]) {
    const began = performance.now()
    const answer = await raw(gateway.url, bytes)
    t.match(answer, { status: 504 })
    t.ok(performance.now() - began < 20_000, 'before the time for a whole request is over')
  }
})

t.test('an upload slower than 1 KiB a second over 10 s is 408', async t => {
  const wire = await openWire(t.after)
  const slow = [
    request('POST /api/open/small', ['Content-Length: 1000', 'Content-Type: text/plain'], 'x'),
    request('POST /api/open/chunks', fields, chunk(1)),
    request('POST /api/open/large', fields, chunk(80_000)),
    request('POST /api/open/long', ['Content-Length: 400000', 'Content-Type: text/plain'], 'x')
  ]
  const began = performance.now()
  const lines = await Promise.all(
    slow.map(async bytes => {
      const line = await open(t.after, wire.gateway.url)
      line.socket.write(bytes)
      const drip = setInterval(
        () => line.socket.write(bytes.includes('chunked') ? chunk(10) : 'x'),
        500
      )
      t.after(() => clearInterval(drip))
      await line.closed
      clearInterval(drip)
      return { answer: line.received(), ms: performance.now() - began }
    })
  )
  for (const { answer, ms } of lines) {
    t.match(answer, /^HTTP\/1\.1 408 /)
    t.match(answer, /"errorCode":"request\.timeout"/)
    t.ok(ms < 29_000, 'before the time for a whole request is over')
  }
  t.equal(wire.backend.seen.length, 0)
})

t.test(
  'an upload may take longer than the first byte of the response, and than a small body',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, {
      gateway: { server: { requestTimeout: '400ms' } },
      limits: { ...limits, sizes: { body: '10MiB' } },
      routes: wireRoutes(backend.url, { responseTimeout: '400ms' })
    })
    const line = await open(t.after, gateway.url)
    line.socket.write(request('POST /api/open/x', fields, chunk(80_000)))
    const type = 'Content-Type: application/json'
    const slow = await open(t.after, gateway.url)
    slow.socket.write(request(`POST ${loginPath}`, ['Content-Length: 1000', type], '{'))
    // 1 GB takes 400 s with 20 Mbit/s: 13 times what a sign-in may take, as here, in steps that are
    // shorter than that.
    for (let step = 0; step < 52; step++) {
      await setTimeout(100)
      line.socket.write(chunk(80_000))
      slow.socket.write(' ')
      if (step === 20) t.match(slow.received(), /^HTTP\/1\.1 408 /, 'a sign-in has its own time')
    }
    line.socket.write('0\r\n\r\n')
    t.match(await line.until(text => text.includes('\r\n\r\n')), /^HTTP\/1\.1 200 /)
    t.equal(backend.seen[0]?.body.length, 53 * 80_000)
  }
)

t.end()
