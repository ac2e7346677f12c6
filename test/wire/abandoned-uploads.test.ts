/** Uploads whose client leaves while no upstream takes them: only they end. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { open, wireRoutes } from '../support/wire.ts'

const fields = ['Transfer-Encoding: chunked', 'Content-Type: text/plain']
const chunked = (more: string) => request('POST /api/open/x', fields, more)
const large = `18000\r\n${'x'.repeat(98_304)}\r\n`
const ends = {
  'a reset': { bytes: chunked('5\r\nhello\r\n'), reset: true },
  'an end within the body': { bytes: chunked('5\r\nhello\r\n'), reset: false },
  'a malformed chunk': { bytes: chunked('5\r\nhello\r\nzz\r\n'), reset: false },
  // More than is collected before an upstream is asked.
  'a reset after 96 KiB': { bytes: chunked(large), reset: true },
  'a malformed chunk after 96 KiB': { bytes: chunked(`${large}zz\r\n`), reset: false }
}

type End = (typeof ends)[keyof typeof ends]

async function abandon(t: Test, url: string, { bytes, reset }: End): Promise<void> {
  const line = await open(t.after, url)
  await new Promise<void>(resolve => line.socket.write(bytes, () => resolve()))
  if (reset) line.socket.resetAndDestroy()
  else line.socket.end()
  await line.closed
}

t.test('uploads abandoned while the upstream refuses do not end the process', async t => {
  const routes = wireRoutes(`http://127.0.0.1:${await freePort()}`)
  const gateway = await testGateway(t.after, { routes })
  for (const [title, end] of Object.entries(ends)) {
    await Promise.all(Array.from({ length: 30 }, () => abandon(t, gateway.url, end)))
    t.equal((await gateway.call('/api/session')).status, 401, `served after ${title}`)
  }
})

t.test('uploads abandoned while the upstream has no place do not end the process', async t => {
  const backend = await testUpstream(t.after, () => {})
  const routes = wireRoutes(backend.url, { connections: 1, queue: 1 })
  const gateway = await testGateway(t.after, { routes })
  const held = [await open(t.after, gateway.url), await open(t.after, gateway.url)]
  for (const line of held) line.socket.write(request('GET /api/open/held'))
  await until('the only connection is taken', () => backend.begun() === 1)
  for (const [title, end] of Object.entries(ends)) {
    await Promise.all(Array.from({ length: 10 }, () => abandon(t, gateway.url, end)))
    t.equal((await gateway.call('/api/session')).status, 401, `served after ${title}`)
  }
  t.equal(backend.begun(), 1, 'none of them reached the upstream')
})

t.test('uploads abandoned while they wait for a connection do not end the process', async t => {
  const backend = await testUpstream(t.after, () => {})
  const routes = wireRoutes(backend.url, { connections: 1, queue: 20 })
  const gateway = await testGateway(t.after, { routes })
  const holder = await open(t.after, gateway.url)
  holder.socket.write(request('GET /api/open/held'))
  await until('the only connection is taken', () => backend.begun() === 1)
  const waiting = async () => {
    const text = await (await gateway.ops('/metrics')).text()
    return Number(/^console_gateway_upstream_waiting\{.*\} (\d+)$/m.exec(text)?.[1])
  }
  for (const [title, leave] of Object.entries<(socket: Socket) => unknown>({
    'a reset': socket => socket.resetAndDestroy(),
    'an end within the body': socket => socket.end(),
    'a malformed chunk': socket => socket.end('zz\r\n')
  })) {
    const lines = await Promise.all(Array.from({ length: 10 }, () => open(t.after, gateway.url)))
    for (const { socket } of lines) socket.write(chunked(large))
    await until('all wait', async () => (await waiting()) === 10)
    for (const { socket } of lines) leave(socket)
    await until('none waits', async () => (await waiting()) === 0)
    t.equal((await gateway.call('/api/session')).status, 401, `served after ${title}`)
  }
  t.equal(backend.begun(), 1, 'none of them reached the upstream')
})

t.end()
