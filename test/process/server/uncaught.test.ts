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
import { testRedis } from '../../support/redis.ts'
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

interface Status {
  readonly workers: ReadonlyArray<{ readonly pid: number }>
}

async function open(t: Test, workers: number) {
  const held: Array<() => void> = []
  const upstream = await testUpstream(t.after, (request, response) => {
    if (request.url === '/api/any/held') held.push(() => response.end('held'))
    else response.end('ok')
  })
  const [port = 0, opsPort = 0] = await freePorts(2)
  const redis = workers > 1 ? { redis: { url: (await testRedis(t.after)).url } } : {}
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}`, workers },
      ops: { listen: `127.0.0.1:${opsPort}` },
      drain: { notice: '0ms', grace: '5m' },
      session: { secrets: ['${SESSION_SECRET}'] },
      ...redis
    },
    limits: { limits: { all: { by: 'address', max: 1_000_000, window: '1h' } } },
    routes: routes(upstream.url)
  })
  const gateway = start(t.after, folder, environment)
  await gateway.says('listening on')
  const ops = `http://127.0.0.1:${opsPort}`
  await until('ready', async () => (await askOps(ops, '/readyz')).status === 200)
  const call = async (path: string, agent: Agent | false = false) => {
    const asked = get(`http://127.0.0.1:${port}/api/any/${path}`, { agent: agent || new Agent() })
    asked.on('error', () => {})
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    return `${answer.statusCode} ${await text(answer)}`
  }
  const metric = async (name: string) => {
    const body = await (await askOps(ops, '/metrics')).text()
    const lines = body.split('\n').filter(line => line.startsWith(name))
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  const status = async () => (await (await askOps(ops, '/ops/api/status')).json()) as Status
  const readiness = async () =>
    (await (await askOps(ops, '/readyz')).json()) as { workers?: string }
  return { gateway, upstream, held, call, metric, status, readiness, ops }
}

t.test(
  'one of two workers throws: no other request fails, and another takes its place',
  async t => {
    const { gateway, held, call, metric, status, readiness } = await open(t, 2)
    const long = Promise.all(Array.from({ length: 6 }, () => call('held')))
    await until('requests are in flight at both workers', () => held.length === 6)
    const agent = new Agent({ keepAlive: true, maxSockets: 4 })
    t.after(() => agent.destroy())
    const answers = new Map<string, number>()
    const over = new AbortController()
    const load = async (kept: Agent | false) => {
      while (!over.signal.aborted) {
        const answer = await call('quick', kept).catch(String)
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
      }
    }
    const loads = [false as const, false as const, agent, agent].map(load)
    await until('the load runs', () => (answers.get('200 ok') ?? 0) > 50)
    const {
      workers: [failing]
    } = await status()
    process.kill(failing?.pid ?? 0, 'SIGUSR2')
    await gateway.says('a worker had an internal error and drains')
    await until('another serves in its place', async () => {
      const { workers } = await status()
      return workers.length === 2 && workers.every(({ pid }) => pid !== failing?.pid)
    })
    const before = answers.get('200 ok') ?? 0
    await until('the load went on', () => (answers.get('200 ok') ?? 0) > before + 50)
    over.abort()
    await Promise.all(loads)
    t.same([...answers.keys()], ['200 ok'])
    t.doesNotThrow(() => process.kill(failing?.pid ?? 0, 0), 'it waits for what is in flight')
    for (const finish of held) finish()
    t.same(
      await long,
      Array.from({ length: 6 }, () => '200 held')
    )
    await until('the failed worker ended', () => {
      try {
        return !process.kill(failing?.pid ?? 0, 0)
      } catch {
        return true
      }
    })
    t.match(await readiness(), { workers: '2 of 2' })
    t.equal(await metric('console_gateway_worker_restarts_total'), 1)
    t.equal(await metric('console_gateway_stray_errors_total'), 0)
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
  }
)

t.test(
  'an error event that nobody listened to is logged and counted; the process goes on',
  async t => {
    for (const workers of [1, 2]) {
      const { gateway, call, metric, status } = await open(t, workers)
      const pid = (await status()).workers?.[0]?.pid
      if (pid === undefined) gateway.signal('SIGWINCH')
      else process.kill(pid, 'SIGWINCH')
      t.match(await gateway.says('process.stray-error'), 'ECONNRESET')
      t.equal(await metric('console_gateway_stray_errors_total'), 1)
      t.equal(await call('quick'), '200 ok')
      t.equal(await metric('console_gateway_worker_restarts_total'), 0)
      gateway.signal('SIGTERM')
      t.same(await gateway.ended, { code: 0, signal: null })
    }
  }
)

t.test(
  'a single process that throws is not ready, finishes what is in flight, and ends with 1',
  async t => {
    const { gateway, held, call, ops } = await open(t, 1)
    const long = call('held')
    await until('a request is in flight', () => held.length === 1)
    gateway.signal('SIGUSR2')
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
