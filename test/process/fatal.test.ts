import { Agent, get } from 'node:http'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { askOps } from '../support/ops.ts'
import { freePorts } from '../support/ports.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const fault = new URL('../support/fault-on-signal.ts', import.meta.url).href
const environment = {
  SESSION_SECRET: 'a secret of at least thirty-two characters',
  NODE_OPTIONS: `--import=${fault}`
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
  return { gateway, held, call, ops }
}

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
