/** `explain --live` of a response of parts; the rest stands in explain.transcript.yaml. */
import t from 'tap'
import { run } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

t.test('a response has its parts as the gateway gives it to the console', async t => {
  const orders = await testUpstream(t.after, (request, response, seen) => {
    const isPart = seen.url.startsWith('/count')
    json(200, { code: 0, data: isPart ? { unread: 3 } : [{ id: 1 }] })(request, response, seen)
  })
  const broken = await testUpstream(t.after, json(500, { message: 'down \u009b2J' }))
  const folder = await configFolder({
    gateway: { server: { mount: '/console' } },
    routes: {
      upstreams: {
        orders: { url: orders.url },
        broken: { url: broken.url, credential: 'none' }
      },
      routes: {
        whole: {
          path: '/api/orders/:id',
          upstream: 'orders',
          rewrite: '/orders/:id',
          access: 'public',
          into: 'orders',
          shape: 'wrapped',
          parts: {
            unread: { upstream: 'orders', rewrite: '/count', shape: 'opened', into: 'unread' },
            news: {
              upstream: 'broken',
              rewrite: '/news',
              into: 'news',
              required: false,
              default: []
            }
          }
        }
      },
      shapes: {
        opened: [{ open: 'code-data' }, { unwrap: 'unread' }],
        wrapped: [{ drop: ['orders.code'] }, { wrap: 'envelope' }]
      }
    }
  })
  const ask = ['explain', 'GET', '/console/api/orders/7?full=1', '-c', folder]
  const traced = await run([...ask, '--live', '--json'])
  t.equal(traced.code, 0, traced.err)
  const explanation = JSON.parse(traced.out)
  t.match(JSON.parse(explanation.response.body), { missing: ['news'], data: { unread: 3 } })
  t.match(explanation, {
    record: { missing: ['news'] },
    shape: { before: { orders: { code: 0 }, unread: 3, news: [] }, operations: [{}, {}] }
  })
  const headers = ['--header', 'authorization: Bearer x', '--header', 'x-tenant: 7']
  broken.seen.length = 0
  t.match(await run([...ask, '--live', ...headers]), { code: 0, out: /missing: news/ })
  const [asked] = broken.seen
  t.equal(asked?.headers['x-tenant'], '7', 'as of a client')
  t.equal(asked?.headers.authorization, undefined, 'a back-end without credential gets none')
  t.match(orders.seen.at(-1)?.headers, { 'authorization': 'Bearer x', 'x-tenant': '7' })
  t.match(await run([...ask, '--answer', '-'], { input: '{}' }), {
    code: 1,
    err: /The route adds parts to the response before it is shaped: request all of them by --live/
  })
})

t.test('a response that is too large to be shaped is said to be', async t => {
  const large = await testUpstream(t.after, json(200, { code: 0, data: 'x'.repeat(2000) }))
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: large.url } },
      routes: { r: { path: '/api/r', access: 'public', upstream: 'b', shape: 's' } },
      shapes: { s: [{ open: 'code-data' }] }
    },
    limits: { sizes: { shape: '1KiB' } }
  })
  t.match(await run(['explain', 'GET', '/api/r', '-c', folder, '--live']), {
    code: 3,
    out: /shape\.too-large/
  })
})
