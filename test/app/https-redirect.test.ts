import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createHttpsRedirect } from '../../src/app/https-redirect.ts'
import { loadConfig } from '../../src/config/read/load.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import type { Trail } from '../../src/observability/trail.ts'
import { createLogger } from '../../src/services/logger.ts'
import { configFolder } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

async function redirectsOf(t: Test, hosts = ['Console.example']) {
  const kept: Trail[] = []
  const { gateway } = loadConfig(await configFolder({ gateway: { server: { hosts } } }), {})
  const server = createHttpsRedirect(gateway, {
    log: createLogger({ level: 'silent', format: 'json' }),
    metrics: new Metrics(),
    failures: { add: (trail: Trail) => void kept.push(trail) }
  })
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return async (head: string) => {
    const { status, whole } = await raw(`http://127.0.0.1:${port}`, `${head}\r\n\r\n`)
    const [, location] = /^location: (.*)$/m.exec(whole.replaceAll('\r', '')) ?? []
    const [, id = ''] = /^x-request-id: (.*)$/m.exec(whole.replaceAll('\r', '')) ?? []
    const requests = kept.filter(({ requestId }) => requestId === id)
    return { status, location, answer: whole, requests }
  }
}

t.test('a known name leads to its https, with the same path and query', async t => {
  const ask = await redirectsOf(t)
  t.match(await ask('GET /a/b?c=%2F HTTP/1.1\r\nHost: console.EXAMPLE:8080'), {
    status: 308,
    location: 'https://console.example/a/b?c=%2F'
  })
  t.match(await ask('HEAD / HTTP/1.0\r\nHost: console.example'), {
    status: 308,
    location: 'https://console.example/'
  })
  const elsewhere = await redirectsOf(t, ['[::1]:8443', 'c.example'])
  t.match(await elsewhere('GET / HTTP/1.1\r\nHost: [::1]:80'), { location: 'https://[::1]:8443/' })
})

t.test('nothing else leads anywhere, and no name of a client is repeated', async t => {
  const ask = await redirectsOf(t)
  for (const head of [
    'GET / HTTP/1.1\r\nHost: evil.example',
    'GET / HTTP/1.1\r\nHost: console.example.evil.example',
    'GET / HTTP/1.1\r\nHost: console.example@evil.example',
    'GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: console.example',
    'GET / HTTP/1.0',
    'GET //evil.example HTTP/1.1\r\nHost: console.example',
    'GET /..//evil.example HTTP/1.1\r\nHost: console.example',
    'GET /\\evil.example HTTP/1.1\r\nHost: console.example',
    'GET http://evil.example/ HTTP/1.1\r\nHost: console.example',
    'OPTIONS * HTTP/1.1\r\nHost: console.example'
  ]) {
    const { status, location, answer } = await ask(head)
    t.equal(status, 400, head)
    t.equal(location, undefined, head)
    t.notMatch(answer, 'evil', head)
  }
  const posted = 'POST / HTTP/1.1\r\nHost: console.example\r\nContent-Length: 9'
  t.match(await ask(posted), { status: 405, location: undefined, answer: /^allow: GET, HEAD/im })
})

t.test('each request is remembered by the id of its answer, without its query', async t => {
  const ask = await redirectsOf(t)
  const address = '127.0.0.1'
  const { requests } = await ask('GET /a?token=secret HTTP/1.1\r\nHost: console.example')
  t.match(requests, { length: 1, 0: { status: 308, method: 'GET', path: '/a', address } })
  const refused = await ask('GET / HTTP/1.1\r\nHost: evil.example')
  t.match(refused.requests, { length: 1, 0: { status: 400, path: '/' } })
})
