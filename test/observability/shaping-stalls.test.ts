import t from 'tap'
import { stallsOf } from '../../src/observability/shaping-stalls.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const name = 'console_gateway_shaping_stalls_total'

t.test('work of more than 5 ms is a stall', async t => {
  const metrics = createMetrics()
  const onStretch = stallsOf(metrics, 'orders')
  onStretch(5)
  t.notMatch((await metrics.text()).body, `${name}{`)
  onStretch(5.1)
  onStretch(300)
  t.match((await metrics.text()).body, `${name}{route="orders"} 2\n`)
})

const row = { first: 'a'.repeat(40), second: 1, third: [1, 2, 3], fourth: { fifth: null } }
const rows = Array.from({ length: 40_000 }, () => row)

/** @returns the lines of the metric after a large response was shaped */
async function stallsAfterLarge(
  cleanUp: (undo: () => unknown) => void,
  server: Record<string, unknown>
): Promise<string[]> {
  const backend = await testUpstream(cleanUp, json(200, { rows }))
  const large = {
    path: '/api/large',
    access: 'public',
    methods: ['GET'],
    upstream: 'b',
    shape: 'rows',
    maxShaped: '16MiB'
  }
  const gateway = await testGateway(cleanUp, {
    gateway: { server },
    routes: {
      upstreams: { b: { url: backend.url } },
      shapes: { rows: [{ unwrap: 'rows' }, { each: [{ rename: { first: 'one' } }] }] },
      routes: { large }
    }
  })
  const { status, json: body } = await gateway.call('/api/large')
  if (status !== 200 || body.length !== rows.length) throw new Error(`it was answered ${status}`)
  const text = await (await gateway.ops('/metrics')).text()
  return text.split('\n').filter(line => line.startsWith(`${name}{`))
}

t.test('a large response that is shaped without a thread is a stall of its route', async t => {
  t.same(await stallsAfterLarge(t.after, { shapingThreads: 0 }), [`${name}{route="large"} 1`])
})

t.test('a large response that a thread shapes is none', async t => {
  t.same(await stallsAfterLarge(t.after, {}), [])
})
