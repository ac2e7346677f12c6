import { gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

const metricsOf = async (gateway: Pick<TestGateway, 'ops'>, ...names: string[]) =>
  (await (await gateway.ops('/metrics')).text())
    .split('\n')
    .filter(line => names.some(name => line.startsWith(`${name}{`)))
    .toSorted()

t.test('a compressed part is unpacked and merged', async t => {
  const length = 300_000
  const part = JSON.stringify({ text: 'x'.repeat(length) })
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const coding = url === '/part' ? 'gzip' : 'identity'
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
      .end(coding === 'gzip' ? gzipSync(part) : '{"own":1}')
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        long: {
          path: '/api/long',
          access: 'public',
          upstream: 'b',
          rewrite: '/own',
          parts: { a: { upstream: 'b', rewrite: '/part', into: 'a' } }
        }
      }
    }
  })
  const { json } = await gateway.call('/api/long')
  t.match([json['own'], json['a'].text.length], [1, length])
})

t.test('a client that leaves while a required part hangs is no error', async t => {
  const backend = await testUpstream(t.after, () => {})
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        parts: {
          path: '/api/parts',
          access: 'public',
          parts: { a: { upstream: 'b', rewrite: '/a', required: true } }
        }
      }
    }
  })
  const leaving = new AbortController()
  const left = fetch(`${gateway.url}/api/parts`, { signal: leaving.signal })
  await until('the part is asked', () => backend.begun() === 1)
  leaving.abort()
  await t.rejects(left)
  await gateway.logged(({ status }) => status === 499)
  const errors = await metricsOf(gateway, 'console_gateway_errors_total')
  t.same(
    errors.filter(line => !line.endsWith(' 0')),
    []
  )
})
