import { Agent, get } from 'node:http'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { isStray } from '../../../src/process/server/uncaught.ts'
import { start } from '../../support/command.ts'
import { configFolder } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { freePorts } from '../../support/ports.ts'
import { testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const faults = new URL('../../support/faults-on-signal.ts', import.meta.url).href
const environment = {
  SESSION_SECRET: 'a secret of at least thirty-two characters',
  NODE_OPTIONS: `--import=${faults}`
}
const routes = (url: string) => ({
  // Longer than a busy machine needs for what happens while requests are held.
  upstreams: { b: { url, responseTimeout: '5m' } },
  routes: { any: { path: '/api/any/*', access: 'public', upstream: 'b' } }
})

async function open(t: Test) {
  const held: Array<() => void> = []
  const upstream = await testUpstream(t.after, (request, response) => {
    if (request.url === '/api/any/held') held.push(() => response.end('held'))
    else response.end('ok')
  })
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}` },
      drain: { notice: '0ms', grace: '5m' },
      session: { secrets: ['${SESSION_SECRET}'] }
    },
    limits: { limits: { all: { by: 'address', max: 1_000_000, window: '1h' } } },
    routes: routes(upstream.url)
  })
  const gateway = start(t.after, folder, environment)
  await gateway.says('listening on')
  const ops = `http://127.0.0.1:${opsPort}`
  await until('ready', async () => (await askOps(ops, '/readyz')).status === 200)
  const call = async (path: string) => {
    const asked = get(`http://127.0.0.1:${port}/api/any/${path}`, { agent: new Agent() })
    asked.on('error', () => {})
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    return `${answer.statusCode} ${await text(answer)}`
  }
  const metric = async (name: string) => {
    const body = await (await askOps(ops, '/metrics')).text()
    const lines = body.split('\n').filter(line => line.startsWith(name))
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  return { gateway, held, call, metric, ops }
}

t.test(
  'an error event that nobody listened to is logged and counted; the process goes on',
  async t => {
    const { gateway, call, metric } = await open(t)
    gateway.signal('SIGWINCH')
    t.match(await gateway.says('process.stray-error'), 'ECONNRESET')
    t.equal(await metric('console_gateway_stray_errors_total'), 1)
    t.equal(await call('quick'), '200 ok')
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
  }
)

t.test(
  'a process that throws is not ready, finishes what is in flight, and ends with 1',
  async t => {
    const { gateway, held, call, ops } = await open(t)
    const long = call('held')
    await until('a request is in flight', () => held.length === 1)
    gateway.signal('SIGURG')
    await gateway.says('a fault made by a test')
    await until('not ready', async () => (await askOps(ops, '/readyz')).status === 503)
    for (const finish of held) finish()
    t.equal(await long, '200 held')
    t.same(await gateway.ended, { code: 1, signal: null })
  }
)

t.test('only what a socket or stream raised without our code counts as stray', t => {
  const made = (code: string | undefined, stack: string) =>
    Object.assign(new Error('x'), { code, stack })
  const system = 'Error: x\n    at TCP.onStreamRead (node:internal/stream_base_commons:216:20)'
  const library = `${system}\n    at x (file:///app/node_modules/undici/lib/x.js:1:2)`
  const ours = `${system}\n    at x (${new URL('../../../src/proxy/upstream.ts', import.meta.url).href}:1:2)`
  for (const code of ['ECONNRESET', 'EPIPE', 'EMFILE', 'HPE_INVALID_CONSTANT', 'UND_ERR_SOCKET']) {
    t.ok(isStray(made(code, system), 'uncaughtException'), code)
    t.ok(isStray(made(code, library), 'uncaughtException'), `${code} of a library`)
    t.notOk(isStray(made(code, ours), 'uncaughtException'), `${code} with a frame of ours`)
    t.notOk(isStray(made(code, system), 'unhandledRejection'), `${code} as a rejection`)
  }
  for (const code of [undefined, 'ERR_INVALID_ARG_TYPE', 'FST_ERR_BAD_URL']) {
    t.notOk(isStray(made(code, system), 'uncaughtException'), String(code))
  }
  t.notOk(isStray('ECONNRESET', 'uncaughtException'))
  t.end()
})

t.end()
