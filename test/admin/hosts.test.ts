import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { createHostCheck } from '../../src/admin/hosts.ts'
import { answers, raw, request as rawRequest } from '../support/raw.ts'
import { testGateway } from '../support/gateway.ts'

const told = ['/readyz', '/metrics', '/openapi.json']

/** As a browser or a scraper would ask: `fetch` does not let its caller choose `Host`. */
async function get(
  opsUrl: string,
  path: string,
  headers: Record<string, string>
): Promise<IncomingMessage> {
  const asked = request(opsUrl + path, { headers }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return response
}

t.test('a page that gave its own name this address reads nothing: 421', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { ops: { hosts: ['Ops.example.com'], openMetrics: true } }
  })
  const marks = [
    { origin: 'http://evil.example' },
    { referer: 'http://evil.example/' },
    { 'sec-fetch-site': 'same-origin' }
  ]
  for (const path of ['/readyz', '/metrics']) {
    for (const mark of marks) {
      const refused = await get(gateway.opsUrl, path, { host: 'evil.example:9090', ...mark })
      t.equal(refused.statusCode, 421, `${path} ${JSON.stringify(mark)}`)
      t.match(await json(refused), { code: 'ops.host', error: /ops\.hosts/ })
      for (const host of [
        '127.0.0.1:9090',
        '[::1]:9090',
        '[::1]',
        'localhost',
        'gateway:9090',
        'ops.EXAMPLE.com'
      ]) {
        t.equal(
          (await get(gateway.opsUrl, path, { host, ...mark })).statusCode,
          200,
          `${path} of ${host}`
        )
      }
    }
    t.equal(
      (await get(gateway.opsUrl, path, { host: 'evil.example' })).statusCode,
      200,
      'no browser'
    )
  }
  const health = await get(gateway.opsUrl, '/healthz', {
    host: 'evil.example',
    origin: 'http://evil.example'
  })
  t.equal(health.statusCode, 200)
  const openApi = await gateway.ops('/openapi.json', { headers: { origin: 'http://evil.example' } })
  t.equal(openApi.status, 200, 'by its address')
  t.same(
    gateway.log.filter(({ event }) => event === 'ops.host').map(({ host, level }) => [host, level]),
    [['evil.example', 'warn']]
  )
})

t.test('two Host lines are refused, and any expectation but 100-continue', async t => {
  const gateway = await testGateway(t.after)
  const ask = async (headers: string[]) =>
    await raw(gateway.opsUrl, rawRequest('GET /healthz', headers))
  const hosts = await ask(['host: other.test'])
  t.match(hosts, { status: 400, head: /^connection: close$/im })
  t.match(hosts.whole, '"code":"request.malformed"')
  for (const expected of ['200-ok', '100-continue, x', 'x 100-continue']) {
    const refused = await ask([`expect: ${expected}`])
    t.match(refused, { status: 417, head: /^cache-control: no-store\r$/im }, expected)
    t.match(refused.whole, '"code":"request.expectation"')
  }
  const probe = await raw(gateway.opsUrl, 'GET /healthz HTTP/1.0\r\n\r\n')
  t.equal(probe.status, 200, 'HTTP/1.0 has no Host')
  const continued = await raw(
    gateway.opsUrl,
    rawRequest('GET /healthz', ['expect: 100-Continue']),
    {
      enough: received => answers(received) >= 2
    }
  )
  t.match(continued.whole, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
})

t.test(
  'of unknown names that no browser used there is one warning a day, whatever the name',
  async t => {
    const lines: object[] = []
    let now = 1000
    const check = createHostCheck({
      hosts: [],
      log: {
        warn: fields => {
          lines.push(fields)
        }
      },
      now: () => now
    })
    const ask = async (url: string, host: string, headers = {}) =>
      await check({
        headers: { host, ...headers },
        routeOptions: { url }
      } as never)
    for (const url of told) {
      await t.rejects(ask(url, 'a.example', { origin: 'http://a.example' }), {
        code: 'ops.host',
        status: 421
      })
      await t.rejects(
        ask(url, 'localhost.', { 'sec-fetch-site': 'none' }),
        { code: 'ops.host' },
        'a dot makes it another name'
      )
    }
    t.same(lines, [])
    for (const host of ['a.example', 'b.example:9090', 'x.'.repeat(10_000)]) {
      for (const url of told) await ask(url, host)
    }
    t.match(lines, [{ host: 'a.example' }])
    t.equal(lines.length, 1)
    now += 86_400_000 - 1
    await ask('/metrics', 'b.example')
    t.equal(lines.length, 1)
    now += 1
    await ask('/metrics', 'x.'.repeat(10_000))
    t.match(lines[1], { host: /^(?:x\.){50}$/ })
  }
)
