import t from 'tap'
import { stallsOf } from '../../src/app/shaping-stalls.ts'
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

t.test('a large response that is shaped counts as a stall of its route', async t => {
  const row = { first: 'a'.repeat(40), second: 1, third: [1, 2, 3], fourth: { fifth: null } }
  const rows = Array.from({ length: 40_000 }, () => row)
  const backend = await testUpstream(t.after, json(200, { rows }))
  const large = {
    path: '/api/large',
    access: 'public',
    methods: ['GET'],
    upstream: 'b',
    shape: 'rows',
    maxShaped: '16MiB'
  }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      shapes: { rows: [{ unwrap: 'rows' }, { each: [{ rename: { first: 'one' } }] }] },
      routes: { large }
    }
  })
  t.equal((await gateway.call('/api/large')).status, 200)
  const body = await (await gateway.ops('/metrics')).text()
  t.match(body, `${name}{route="large"} 1\n`)
})
