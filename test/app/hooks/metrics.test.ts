import t from 'tap'
import { Metrics } from '../../../src/observability/metrics.ts'
import { type Files, type TestGateway, testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'

/** The metrics, by `name{labels}`. */
async function scraped(gateway: TestGateway): Promise<Map<string, number>> {
  const answer = await gateway.ops('/metrics')
  t.match(answer.headers.get('content-type'), 'text/plain; version=0.0.4')
  const lines = (await answer.text())
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1))
    ])
  )
}

/** A request is counted when its answer is out, which may be after the client has it. */
async function scrapedUntil(
  gateway: TestGateway,
  name: string,
  value: number
): Promise<Map<string, number>> {
  for (;;) {
    const found = await scraped(gateway)
    if (found.get(name) === value) return found
    await new Promise(resolve => setImmediate(resolve))
  }
}

const files = (url: string): Files => ({
  routes: {
    upstreams: { orders: { url } },
    aliases: { '/api/mine': '/api/orders' },
    routes: {
      orders: {
        path: '/api/orders',
        methods: ['GET', 'POST'],
        access: 'public',
        upstream: 'orders'
      }
    }
  },
  limits: { limits: { few: { by: 'address', max: 3, window: '1h', routes: ['login'] } } }
})
const requests = (route: string, method: string, status: string) =>
  `console_gateway_requests_total{route="${route}",method="${method}",status="${status}"}`

t.test(
  'requests are counted by route, method and class of status; an alias counts as what it stands for',
  async t => {
    const backend = await testUpstream(t.after, (request, response, seen) =>
      json(seen.url.endsWith('?fails') ? 500 : 200, {})(request, response, seen)
    )
    const gateway = await testGateway(t.after, files(backend.url))
    for (const path of ['/api/orders', '/api/mine', '/api/mine?page=2', '/api/orders?fails']) {
      await gateway.call(path)
    }
    await gateway.call('/api/orders', { json: {} })
    const found = await scrapedUntil(
      gateway,
      'console_gateway_request_duration_seconds_count{route="orders"}',
      5
    )
    t.equal(found.get(requests('orders', 'GET', '2xx')), 3)
    t.equal(found.get(requests('orders', 'GET', '5xx')), 1)
    t.equal(found.get(requests('orders', 'POST', '2xx')), 1)
    t.equal(found.get('console_gateway_upstream_first_byte_seconds_count{upstream="orders"}'), 5)
    t.equal(found.get('console_gateway_upstream_in_flight{upstream="orders"}'), 0)
    t.equal(found.get('console_gateway_requests_in_flight'), 0)
    t.equal(
      found.get('console_gateway_errors_total{code="upstream.error"}') ?? 0,
      0,
      'a back-end’s own JSON error passes as it is'
    )
  }
)

t.test(
  'whatever no route names is one route, and methods that nobody knows are one method',
  async t => {
    const gateway = await testGateway(t.after)
    for (let n = 0; n < 20; n++) await gateway.call(`/api/${n}/${Math.random()}`)
    await gateway.call('/api/x', { method: 'PROPFIND' })
    const found = await scrapedUntil(
      gateway,
      'console_gateway_request_duration_seconds_count{route="unknown"}',
      21
    )
    t.equal(found.get(requests('unknown', 'GET', '4xx')), 20)
    t.equal(found.get(requests('unknown', 'other', '4xx')), 1)
    t.equal(
      [...found.keys()].filter(name => name.startsWith('console_gateway_requests_total')).length,
      2
    )
    t.equal(found.get('console_gateway_errors_total{code="route.unknown"}'), 21)
  }
)

t.test(
  'a client that left before its answer is counted as gone, and what the upstream has in flight is told meanwhile',
  async t => {
    const backend = await testUpstream(t.after, () => {})
    const gateway = await testGateway(t.after, files(backend.url))
    const leaving = new AbortController()
    const call = fetch(`${gateway.url}/api/orders`, { signal: leaving.signal }).catch(() => {})
    t.equal(
      (await scrapedUntil(gateway, 'console_gateway_upstream_in_flight{upstream="orders"}', 1)).get(
        'console_gateway_requests_in_flight'
      ),
      1
    )
    leaving.abort()
    await call
    const found = await scrapedUntil(gateway, requests('orders', 'GET', 'gone'), 1)
    t.equal(found.get('console_gateway_requests_in_flight'), 0)
  }
)

t.test(
  'sign-ins are counted by what became of them and who decided, refusals of limits by the limit’s name',
  async t => {
    const gateway = await testGateway(t.after, files('http://127.0.0.1:9'))
    await gateway.signIn()
    await gateway.call('/api/auth/admin/login', { json: { username: 'alice', password: 'wrong' } })
    await gateway.call('/api/auth/admin/login', { json: { username: 'alice' } })
    await gateway.call('/api/auth/admin/login', { json: { username: 'alice', password: 'x' } })
    const found = await scrapedUntil(gateway, requests('login', 'POST', '4xx'), 3)
    for (const [source, outcome] of [
      ['users-file', 'accepted'],
      ['users-file', 'refused'],
      ['', 'malformed']
    ] as const) {
      const name = `console_gateway_sign_ins_total{source="${source}",outcome="${outcome}"}`
      t.equal(found.get(name), 1, outcome)
    }
    t.equal(found.get('console_gateway_sessions_opened_total{source="users-file"}'), 1)
    t.equal(found.get('console_gateway_users_signed_in'), 1)
    t.equal(found.get('console_gateway_limit_refused_total{limit="few"}'), 1)
  }
)

t.test('the process, what runs, and the session store are told', async t => {
  const found = await scraped(await testGateway(t.after))
  // A kernel that counts in ticks of 10 ms tells 0 seconds for a gateway this young.
  t.ok(found.has('process_cpu_user_seconds_total'))
  t.ok((found.get('nodejs_heap_size_used_bytes') ?? 0) > 0)
  t.equal(found.get('console_gateway_session_store_up{kind="embedded"}'), 1)
  t.equal(found.get('console_gateway_generation'), 1)
  t.ok([...found.keys()].some(name => name.startsWith('console_gateway_info{version="')))
})

t.test(
  'a metric that is asked for twice is one, buckets add up, and labels are written so that nobody can forge a line',
  async t => {
    const metrics = new Metrics()
    const counter = () => metrics.counter('c_total', 'C.', ['a', 'b']).labels('x"\n\\', 'y')
    counter().inc()
    counter().inc(2)
    const durations = metrics.histogram('d_seconds', 'D.', ['a'], [1, 5]).labels('z')
    for (const value of [0.5, 1, 3, 9]) durations.observe(value)
    metrics.read({ name: 'e', help: 'E.', read: () => [[[], -1]] })
    const values = [[['one'], 1] as const, [['two'], 2] as const]
    metrics.read({ type: 'counter', name: 'f', help: 'F.', labelNames: ['g'], read: () => values })
    metrics.read({ name: 'unknown', help: 'U.', read: () => [] })
    await metrics.text()
    const { body } = await metrics.text()
    for (const line of [
      'c_total{a="x\\"\\n\\\\",b="y"} 3',
      'd_seconds_bucket{le="1",a="z"} 2',
      'd_seconds_bucket{le="5",a="z"} 3',
      'd_seconds_bucket{le="+Inf",a="z"} 4',
      'd_seconds_sum{a="z"} 13.5',
      'd_seconds_count{a="z"} 4',
      'e -1',
      'f{g="one"} 1',
      'f{g="two"} 2',
      '# TYPE d_seconds histogram',
      '# HELP c_total C.'
    ]) {
      t.ok(body.includes(`${line}\n`), line)
    }
    t.notMatch(body, /^unknown/m, 'what cannot be read is not there')
  }
)
