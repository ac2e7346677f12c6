/** Active health checks over real sockets. */
import t, { type Test } from 'tap'
import { testUpstream, type TestUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { trackedUpstream } from '../support/tracked-upstream.ts'

const health = { path: '/healthz', interval: '10ms' }

/** A back-end with a health of its own, which counts checks apart from requests. */
async function backendOf(t: Test): Promise<TestUpstream & { status: number }> {
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    response.writeHead(url === '/healthz' ? state.status : 200).end('{}')
  })
  const state = Object.assign(backend, { status: 204 })
  return state
}

const checksOf = ({ seen }: TestUpstream) => seen.filter(({ url }) => url === '/healthz').length
const requestsOf = ({ seen }: TestUpstream) => seen.length - checksOf({ seen } as TestUpstream)

function upstreamOf(t: Test, written: Record<string, unknown>) {
  const { upstream, transitions } = trackedUpstream(t.after, written)
  const ask = () =>
    upstream.fetchWhole({ method: 'GET', path: '/x', headers: {}, timeoutMs: 5000, maxBytes: 1000 })
  return { upstream, ask, transitions }
}

t.test('without health nothing is checked', async t => {
  const backend = await backendOf(t)
  const { ask } = upstreamOf(t, { url: [backend.url] })
  await ask()
  t.equal(checksOf(backend), 0)
})

t.test('an address whose checks fail gets no requests until one passes', async t => {
  const [good, sick] = [await backendOf(t), await backendOf(t)]
  const { ask, transitions } = upstreamOf(t, { url: [good.url, sick.url], health })
  sick.status = 500
  await until('it is unhealthy', () => transitions.includes(`${sick.url} unhealthy`))
  t.ok(checksOf(sick) >= 2)
  const before = requestsOf(sick)
  for (let count = 0; count < 50; count++) await ask()
  t.equal(requestsOf(sick), before)
  t.ok(requestsOf(good) >= 50)
  sick.status = 200
  await until('it is healthy', () => transitions.includes(`${sick.url} healthy`))
  await until('it gets requests', async () => {
    await ask()
    return requestsOf(sick) > before
  })
  t.same(transitions, [`${sick.url} unhealthy`, `${sick.url} healthy`])
})

t.test('a check has the headers that the upstream always gets', async t => {
  const backend = await backendOf(t)
  upstreamOf(t, { url: [backend.url], health, headers: { 'x-tenant': 'acme' } })
  await until('it is checked', () => checksOf(backend) > 0)
  t.match(backend.seen[0]?.headers, { 'x-tenant': 'acme' })
})

t.test('silence, a closed port and any status but 2xx fail', async t => {
  const good = await backendOf(t)
  good.status = 299
  const moved = await backendOf(t)
  moved.status = 302
  const silent = await testUpstream(t.after, () => {})
  const closed = await backendOf(t)
  await closed.close()
  const urls = [good.url, moved.url, silent.url, closed.url]
  const { transitions } = upstreamOf(t, { url: urls, health })
  const expected = urls.slice(1).map(url => `${url} unhealthy`)
  await until('three fail', () => expected.every(line => transitions.includes(line)))
  t.equal(transitions.length, 3)
})

t.test('where all are unhealthy, all get requests', async t => {
  const [one, two] = [await backendOf(t), await backendOf(t)]
  const { ask, transitions } = upstreamOf(t, { url: [one.url, two.url], health })
  one.status = two.status = 503
  await until('both are unhealthy', () => transitions.length === 2)
  for (let count = 0; count < 20; count++) t.match(await ask(), { status: 200 })
  t.ok([one, two].every(backend => requestsOf(backend) > 5))
})

t.test('the only address gets requests whatever its checks find', async t => {
  const only = await backendOf(t)
  only.status = 500
  const { ask, transitions } = upstreamOf(t, { url: only.url, health })
  await until('it is unhealthy', () => transitions.length === 1)
  t.match(await ask(), { status: 200 })
})

t.test('checks end with the pool', async t => {
  const backend = await backendOf(t)
  const { upstream } = upstreamOf(t, { url: [backend.url], health })
  await until('it is checked', () => checksOf(backend) > 2)
  await upstream.retire()
  await until('no connection is left', async () => {
    await backend.idle()
    return true
  })
  const before = backend.begun()
  const other = await backendOf(t)
  const { transitions } = upstreamOf(t, { url: [other.url], health })
  await until('another one is checked', () => checksOf(other) > 5)
  t.equal(backend.begun(), before)
  t.same(transitions, [])
})
