/** What the metrics say of requests, sign-ins and refusals. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const backend = await testUpstream(t.teardown, (incoming, response, seen) => {
  if (seen.url.endsWith('?silent')) return
  json(seen.url.endsWith('?fails') ? 500 : 200, {})(incoming, response, seen)
})
const gateway = await testGateway(t.teardown, {
  backend: backend.url,
  routes: {
    aliases: { '/api/mine': '/api/orders' },
    routes: {
      orders: { methods: ['GET', 'POST'], access: 'public' },
      kind: { errorStatus: 'ok' }
    }
  },
  limits: { limits: { few: { by: 'address', max: 3, window: '1h', routes: ['login'] } } }
})

/** The metrics of the gateway, by `name{labels}` without the beginning that all share. */
async function scraped(): Promise<Map<string, number>> {
  const lines = (await gateway.metrics()).split('\n').filter(line => /^[^#]/.test(line))
  return new Map(
    lines.map(line => {
      const [, name = '', value] = /^(?:console_gateway_)?(.*) (\S+)$/.exec(line) ?? []
      return [name, Number(value)]
    })
  )
}

/** A request is counted when its answer is out, which may be after the client has it. */
async function says(t: Test, expected: Readonly<Record<string, number>>): Promise<void> {
  const [[first, value] = ['', 0]] = Object.entries(expected)
  await until(first, async () => (await scraped()).get(first) === value)
  const found = await scraped()
  for (const [name, count] of Object.entries(expected)) t.equal(found.get(name) ?? 0, count, name)
}
const requests = (route: string, method: string, status: string) =>
  `requests_total{route="${route}",method="${method}",status="${status}"}`
const answered = (route: string) => `request_duration_seconds_count{route="${route}"}`

t.test('an error that its console gets as 200 counts as what it is', async t => {
  const { status, json: body } = await gateway.call('/api/kind')
  t.match([status, body.errorCode], [200, 'session.none'])
  await says(t, { [requests('kind', 'GET', '4xx')]: 1, [requests('kind', 'GET', '2xx')]: 0 })
  t.match(await gateway.opsJson('requests?status=401'), {
    requests: [{ route: 'kind', status: 200, errorStatus: 401 }]
  })
})

t.test('requests are counted by route, method and class of status, also by an alias', async t => {
  for (const path of ['/api/orders', '/api/mine', '/api/mine?page=2', '/api/orders?fails']) {
    await gateway.call(path)
  }
  await gateway.call('/api/orders', { json: {} })
  await says(t, {
    [answered('orders')]: 5,
    [requests('orders', 'GET', '2xx')]: 3,
    [requests('orders', 'GET', '5xx')]: 1,
    [requests('orders', 'POST', '2xx')]: 1,
    'upstream_first_byte_seconds_count{upstream="b"}': 5,
    'upstream_in_flight{upstream="b"}': 0,
    'requests_in_flight': 0,
    // A back-end's own JSON error passes as it is.
    'errors_total{code="upstream.error"}': 0
  })
})

t.test('what no route names is one route, methods that nobody knows are one method', async t => {
  for (let n = 0; n < 20; n++) await gateway.call(`/api/${n}/${Math.random()}`)
  await gateway.call('/api/x', { method: 'PROPFIND' })
  await says(t, {
    [answered('unknown')]: 21,
    [requests('unknown', 'GET', '4xx')]: 20,
    [requests('unknown', 'other', '4xx')]: 1,
    'errors_total{code="route.unknown"}': 21
  })
  const names = [...(await scraped()).keys()]
  t.equal(names.filter(name => name.startsWith('requests_total{route="unknown"')).length, 2)
})

t.test('a client that left before its answer is counted as gone', async t => {
  const leaving = new AbortController()
  const call = fetch(`${gateway.url}/api/orders?silent`, { signal: leaving.signal })
  await says(t, { 'upstream_in_flight{upstream="b"}': 1, 'requests_in_flight': 1 })
  leaving.abort()
  await t.rejects(call)
  await says(t, { [requests('orders', 'GET', 'gone')]: 1, requests_in_flight: 0 })
})

t.test('sign-ins are counted by what became of them, refusals by the limit’s name', async t => {
  await gateway.signIn()
  for (const json of [{ password: 'wrong' }, {}, { password: 'x' }]) {
    await gateway.call('/api/auth/admin/login', { json: { username: 'alice', ...json } })
  }
  await says(t, {
    [requests('login', 'POST', '4xx')]: 3,
    'sign_ins_total{source="users-file",outcome="accepted"}': 1,
    'sign_ins_total{source="users-file",outcome="refused"}': 1,
    'sign_ins_total{source="",outcome="malformed"}': 1,
    'users_signed_in': 1,
    'limit_refused_total{limit="few"}': 1
  })
})
