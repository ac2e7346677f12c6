/** A back-end that takes its time: what it may, and whom it keeps from what. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { open } from '../support/wire.ts'

const piece = Buffer.alloc(16 * 1024, 'x')

/** A byte at each 50 ms, without end. */
function drip(response: ServerResponse, type: string): void {
  response.writeHead(200, { 'content-type': type }).write('x')
  const timer = setInterval(() => response.write('x'), 50)
  response.on('close', () => clearInterval(timer))
}

/** As fast as it is taken. */
function pour(response: ServerResponse): void {
  if (response.destroyed) return
  if (response.write(piece)) setImmediate(pour, response)
  else response.once('drain', () => pour(response))
}

let inFlight = 0
const backend = await testUpstream(t.after, (_request, response, { url }) => {
  inFlight++
  response.on('close', () => inFlight--)
  const kind = url.slice(url.lastIndexOf('/') + 1)
  if (kind === 'drip') drip(response, 'text/plain')
  else if (kind === 'events') drip(response, 'text/event-stream')
  else if (kind === 'stalls') response.writeHead(200).write('x')
  else if (kind === 'endless') pour(response)
  else if (kind === 'closes') {
    const { socket } = response.end('{"kept":true}')
    if (Math.random() < 0.5) setTimeout(() => socket?.destroy(), 3 * Math.random())
  } else response.end('fine')
})
const gateway = await testGateway(t.after, {
  gateway: { server: { idleTimeout: '600ms' } },
  routes: {
    upstreams: {
      hasty: { url: backend.url, responseTimeout: '1500ms', totalTimeout: '2s' },
      patient: { url: backend.url, responseTimeout: '1m', totalTimeout: '1m' }
    },
    routes: {
      hasty: { path: '/api/hasty/*', access: 'public', upstream: 'hasty' },
      patient: { path: '/api/patient/*', access: 'public', upstream: 'patient' }
    }
  }
})

/** A request that is under way, on a connection of its own. */
async function begin(target: string) {
  const line = await open(t.after, gateway.url)
  line.socket.write(request(`GET ${target}`))
  return line
}

async function isFineAgain(t: Test): Promise<void> {
  t.match(await gateway.call('/api/hasty/fine'), { status: 200, text: 'fine' })
  await until('the back-end has nothing in flight', () => inFlight === 0)
}

t.test('ten drips at once do not keep the connections of an upstream', async t => {
  const whole = { enough: () => false }
  const bytes = request('GET /api/hasty/drip', ['Connection: close'])
  const drips = Array.from({ length: 10 }, () => raw(gateway.url, bytes, whole))
  await until('all drip', () => inFlight === 10)
  for (const { status, closed } of await Promise.all(drips)) t.same([status, closed], [200, true])
  await isFineAgain(t)
})

t.test('where an upstream sets longer waits, a drip goes on; so do events', async t => {
  const lines = await Promise.all(
    ['/api/patient/drip', '/api/patient/stalls', '/api/hasty/events'].map(begin)
  )
  // As long as what ends others.
  const other = await begin('/api/hasty/drip')
  await other.closed
  t.same(
    lines.map(line => line.isClosed()),
    [false, false, false]
  )
  for (const line of lines) line.socket.destroy()
  await isFineAgain(t)
})

t.test('a slow reader is not taken for a slow back-end', async t => {
  const from = gateway.log.length
  const line = await begin('/api/patient/endless')
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
  const line = await begin('/api/patient/endless')
  t.match(await line.until(received => received.length > 2 ** 20), /^HTTP\/1\.1 200 /)
  line.socket.destroy()
  await isFineAgain(t)
})

t.test('kept connections that are closed at random cost no GET', async t => {
  const statuses: number[] = []
  for (let turn = 0; turn < 100; turn++) {
    statuses.push((await gateway.call('/api/hasty/closes')).status)
  }
  t.same([...new Set(statuses)], [200])
  await isFineAgain(t)
})

t.end()
