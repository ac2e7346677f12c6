/** What operators see of an upstream's addresses: log, metrics, readiness and status. */
import { createServer } from 'node:http'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const backends = [await testUpstream(t.after), await testUpstream(t.after)]
const port = await freePort()
const dead = `http://127.0.0.1:${port}`
const gateway = await testGateway(t.after, {
  backend: { url: [...backends.map(({ url }) => url), dead] },
  routes: {
    upstreams: { sole: { url: dead } },
    routes: {
      r: { access: 'public' },
      sole: { access: 'public', methods: ['POST'], upstream: 'sole' }
    }
  }
})
const { metrics } = gateway

t.test('a dead address is left out, and no request fails', async t => {
  await until('the dead one is left out', async () => {
    const { status, text, headers } = await gateway.call('/api/r')
    if (status !== 200) throw new Error(`${status}`)
    t.notMatch(text + JSON.stringify([...headers]), /127\.0\.0\.1/, 'no response names an address')
    return (await metrics()).includes('upstream_addresses{upstream="b",state="up"} 2')
  })
  t.equal(gateway.log.filter(({ level }) => level === 'error').length, 0)
  const lines = gateway.log.filter(({ event }) => String(event).startsWith('upstream.'))
  t.match(lines, [{ event: 'upstream.address.open', upstream: 'b', address: dead, level: 'warn' }])
  t.equal(lines.length, 1, 'one line for the change')
})

t.test('metrics, /readyz and status tell it, to operators alone', async t => {
  const text = await metrics()
  t.match(text, 'upstream_addresses{upstream="b",state="open"} 1')
  t.match(text, 'upstream_address_opened_total{upstream="b"} 1')
  t.match(text, /upstream_retries_total\{upstream="b",kind="elsewhere"\} [1-9]/)
  t.notMatch(text, dead, 'no label grows with addresses')
  const degraded = `degraded, 1 of 3 addresses: ${dead} does not work: requests failed`
  const ready = await gateway.ops('/readyz')
  t.equal(ready.status, 200)
  t.match(await ready.json(), { 'status': 'ready', 'upstream b': degraded })
  const shown = await fetch(`${gateway.opsUrl}/readyz`)
  t.same([shown.status, await shown.json()], [200, { status: 'ready' }])
  t.match((await gateway.opsJson('status')).upstreams, [
    { address: backends[0]?.url, state: 'up', inFlight: 0 },
    { address: backends[1]?.url, state: 'up', inFlight: 0 },
    { address: dead, state: 'open', inFlight: 0 }
  ])
})

t.test('the only address is never left out: it answers as soon as it is back', async t => {
  for (let n = 0; n < 5; n++) {
    const refused = await gateway.call('/api/sole', { json: {} })
    t.match(refused, { status: 502, json: { errorCode: 'upstream.refused' } })
  }
  const server = createServer((_request, response) => response.end('back'))
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  t.after(() => server.close().closeAllConnections())
  t.match(await gateway.call('/api/sole', { json: {} }), { status: 200, text: 'back' })
})

t.end()
