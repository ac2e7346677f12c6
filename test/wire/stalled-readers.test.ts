/** Clients that stop reading within an answer: they lose their connection, slow ones do not. */
import { mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configFolder, testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { wireRoutes } from './support.ts'

const idleMs = 800
const size = 32 * 1024 * 1024
const settings = {
  server: { listen: '127.0.0.1:0', idleTimeout: `${idleMs}ms` },
  console: { root: 'dist' }
}

async function open(t: Test) {
  const body = JSON.stringify({ big: 'x'.repeat(12 * 1024 * 1024) })
  const upstream = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
  const shaped = { path: '/api/shaped', access: 'public', upstream: 'backend', shape: 'same' }
  const routes = {
    ...wireRoutes(upstream.url, {}, { shaped }),
    shapes: { same: [{ drop: ['nothing'] }] }
  }
  const folder = await configFolder({
    gateway: settings,
    routes,
    limits: { sizes: { shape: '16MiB' } }
  })
  mkdirSync(join(folder, 'dist'))
  writeFileSync(join(folder, 'dist', 'large.bin'), Buffer.alloc(size))
  const gateway = await testGateway(t.after, folder)
  const ask = async (target: string): Promise<Socket> => {
    const { hostname, port } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.write(request(`GET ${target}`))
    await new Promise(resolve => socket.once('readable', resolve))
    return socket
  }
  return { gateway, ask }
}

/** How many descriptors of this process, and so of the gateway, are a file of that name. */
function openFiles(name: string): number {
  return readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith(name)
    } catch {
      return false
    }
  }).length
}

t.test(
  'a reader that stands still loses its connection, whatever it is that is answered',
  async t => {
    const { gateway, ask } = await open(t)
    for (const target of ['/large.bin', '/api/shaped', '/api/open/streamed']) {
      const from = gateway.log.length
      const socket = await ask(target)
      const line = await gateway.logged(
        ({ msg, path }) => msg === 'request' && path === target,
        from
      )
      t.match(line, { status: 499, code: 'request.timeout' }, target)
      socket.destroy()
    }
    t.equal(openFiles('large.bin'), 0)
  }
)

t.test('case V4: after once the time, not twice', async t => {
  const { gateway, ask } = await open(t)
  for (const target of ['/large.bin', '/api/shaped']) {
    const from = gateway.log.length
    const startedAt = performance.now()
    const stoodStillMs = standstill()
    const socket = await ask(target)
    await gateway.logged(({ msg, path }) => msg === 'request' && path === target, from)
    const ms = performance.now() - startedAt
    t.ok(ms > 0.9 * idleMs, `${target}: not before its time, after ${Math.round(ms)} ms`)
    // A pause of this process looks like a reader's progress: its time begins anew.
    const pausedMs = stoodStillMs()
    const anew = pausedMs > idleMs / 20 ? idleMs : 0
    t.ok(ms < 1.3 * idleMs + anew + pausedMs, `${target}: after ${Math.round(ms)} ms`)
    socket.destroy()
  }
})

t.test('a reader that is slow, but reads, gets the whole file', async t => {
  const { gateway, ask } = await open(t)
  const began = performance.now()
  const socket = await ask('/large.bin')
  let received = 0
  let sincePause = 0
  socket.on('data', chunk => {
    received += chunk.length
    sincePause += chunk.length
    if (sincePause < 1024 * 1024) return
    sincePause = 0
    socket.pause()
    setTimeout(() => socket.resume(), idleMs / 8)
  })
  await until('all has come, or the connection ended', () => received > size || socket.destroyed)
  t.ok(received > size)
  t.ok(performance.now() - began > 2 * idleMs, 'longer than a reader may stand still')
  t.match(await gateway.logged(({ path }) => path === '/large.bin'), { status: 200 })
})

t.test('an answer that is long in coming is waited for', async t => {
  const upstream = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    setTimeout(() => response.end('data: 2\n\n'), 3 * idleMs)
  })
  const routes = wireRoutes(upstream.url)
  const { server } = settings
  const gateway = await testGateway(t.after, { gateway: { server }, routes })
  t.equal((await gateway.call('/api/open/events')).text, 'data: 1\n\ndata: 2\n\n')
})

t.end()
