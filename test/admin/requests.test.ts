/** `/ops/api/requests`. */
import Fastify from 'fastify'
import t from 'tap'
import { addRequestRoutes } from '../../src/admin/requests.ts'
import type { FoundRequests } from '../../src/observability/failures.ts'
import { schemaController } from '../../src/app/hooks/validation.ts'
import { testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

interface Requests {
  readonly requests: ReadonlyArray<Record<string, unknown>>
}

t.test('the last requests, by filters, and one id with advice', async t => {
  const gateway = await testGateway(t.after)
  const ask = async (path: string) =>
    (await (await gateway.ops(`/ops/api/requests${path}`)).json()) as Requests
  const cookie = await gateway.signIn()
  const { headers } = await gateway.call('/api/nowhere?token=secret', { cookie })
  const id = headers.get('x-request-id') ?? ''
  await until('it is remembered', async () => (await ask(`/${id}`)).requests.length === 1)
  t.match(await ask('?status=4xx'), {
    requests: [{ requestId: id, status: 404, code: 'route.unknown' }]
  })
  t.match(await ask('?route=login&user=alice&last=1'), { requests: [{ status: 200 }] })
  const one = await ask(`/${id}`)
  t.match(one, {
    requests: [{ requestId: id, advice: /No route has this path/ }],
    oldestAt: String
  })
  t.notMatch(JSON.stringify(await ask('')), 'secret')
  t.same((await ask('/not-there')).requests, [])
})

t.test('a record of another version, with a code unknown here, has no advice', async t => {
  const ops = Fastify({ schemaController })
  t.teardown(() => ops.close())
  const requests = ['upstream.refused', 'upstream.of-tomorrow', 'constructor'].map(code => ({
    requestId: 'x',
    code
  }))
  const found = { requests, hasMore: false }
  addRequestRoutes(ops, { find: () => Promise.resolve(found as unknown as FoundRequests) })
  const response = await ops.inject('/ops/api/requests/x')
  t.equal(response.statusCode, 200)
  const [known, ...unknown] = response.json<Requests>().requests
  t.match(known, { code: 'upstream.refused', message: String, advice: String })
  t.same(unknown, requests.slice(1))
})

t.test(
  'queries that make no sense are refused, and nothing is shown without the secret',
  async t => {
    const gateway = await testGateway(t.after)
    for (const query of [
      '?status=x',
      '?last=0',
      '?last=1000',
      '?status=9xx',
      `/${'x'.repeat(65)}`
    ]) {
      t.equal((await gateway.ops(`/ops/api/requests${query}`)).status, 400, query)
    }
    for (const path of ['/ops/api/requests', '/ops/api/requests/some-id']) {
      t.equal((await fetch(gateway.opsUrl + path)).status, 401)
    }
  }
)

t.test('both paths are described', async t => {
  const gateway = await testGateway(t.after)
  const response = await gateway.ops('/ops/api/openapi.json')
  t.match(await response.json(), {
    paths: {
      '/ops/api/requests': {
        get: {
          parameters: [{ name: 'status' }, {}, {}, { name: 'last', required: false }]
        }
      },
      '/ops/api/requests/{id}': {
        get: { parameters: [{ name: 'id', in: 'path', required: true }] }
      }
    }
  })
})
