import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { createHostCheck } from '../../src/admin/hosts.ts'
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
