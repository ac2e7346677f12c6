/** An internal error that nothing catches. */
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const fault = new URL('../support/fault-on-signal.ts', import.meta.url).href

t.test(
  'a process that throws is not ready, finishes what is in flight, and ends with 1',
  async t => {
    const held: Array<() => void> = []
    const upstream = await testUpstream(t.after, (_request, response) => {
      held.push(() => response.end('held'))
    })
    const folder = await configFolder({
      gateway: { drain: { notice: '0ms', grace: '5m' } },
      routes: {
        // Longer than a busy machine needs for what happens while requests are held.
        upstreams: { b: { url: upstream.url, responseTimeout: '5m' } },
        routes: { any: { path: '/api/any', access: 'public', upstream: 'b' } }
      }
    })
    const gateway = start(t.after, folder, { NODE_OPTIONS: `--import=${fault}` })
    const { url, opsUrl } = await gateway.listens()
    const readiness = async () => (await fetch(`${opsUrl}/readyz`)).status
    await until('ready', async () => (await readiness()) === 200)
    const long = fetch(`${url}/api/any`)
    await until('a request is in flight', () => held.length === 1)
    gateway.signal('SIGURG')
    await gateway.says('a fault made by a test')
    await until('not ready', async () => (await readiness()) === 503)
    for (const finish of held) finish()
    const response = await long
    t.same([response.status, await response.text()], [200, 'held'])
    t.same(await gateway.ended, { code: 1, signal: null })
  }
)
