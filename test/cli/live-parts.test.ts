/** `shape --live` and `contract --live` of routes with parts: merged as the running gateway does. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const orders = await testUpstream(t.after, (request, response, seen) => {
  const isPart = seen.url.startsWith('/count')
  const value = isPart ? { code: 0, data: { unread: 3 } } : { code: 0, data: [{ id: 1 }] }
  json(200, value)(request, response, seen)
})
const people = await testUpstream(t.after, (request, response, seen) => {
  const status = request.headers.authorization === 'Bearer x' ? 200 : 401
  json(status, { name: 'Wang', url: seen.url })(request, response, seen)
})
const broken = await testUpstream(t.after, json(500, { message: 'down \u009b2J' }))

const part = (upstream: string, rewrite: string, more: object = {}) => ({
  upstream,
  rewrite,
  ...more
})
const contract = { schema: { type: 'object' } }

function folderOf(): Promise<string> {
  return configFolder({
    gateway: { server: { listen: '127.0.0.1:0', mount: '/console' } },
    routes: {
      upstreams: {
        orders: { url: orders.url },
        people: { url: people.url, credential: 'bearer' },
        fixed: { url: people.url, headers: { authorization: 'Bearer x' } },
        broken: { url: broken.url }
      },
      routes: {
        whole: {
          path: '/api/orders/:id',
          upstream: 'orders',
          rewrite: '/orders/:id',
          access: 'public',
          methods: ['GET'],
          into: 'orders',
          shape: 'wrapped',
          contract,
          parts: {
            unread: part('orders', '/count', { shape: 'opened', unwrap: 'unread', into: 'unread' }),
            owner: part('fixed', '/owner/:id', { into: 'owner', query: true }),
            news: part('broken', '/news', { into: 'news', required: false, default: [] })
          }
        },
        only: {
          path: '/api/only',
          access: 'public',
          methods: ['GET'],
          shape: 'wrapped',
          parts: { owner: part('people', '/owner', { into: 'owner' }) }
        },
        other: {
          path: '/api/other',
          upstream: 'orders',
          access: 'public',
          methods: ['GET'],
          shape: 'wrapped',
          into: 'orders',
          parts: { owner: part('fixed', '/owner', { into: 'owner' }) }
        },
        failing: {
          path: '/api/failing',
          access: 'public',
          methods: ['GET'],
          parts: { news: part('broken', '/news', { into: 'news' }) }
        }
      },
      shapes: {
        opened: [{ open: 'code-data' }],
        wrapped: [{ drop: ['owner.url'] }, { wrap: 'envelope' }]
      }
    }
  })
}

const folder = await folderOf()
t.after(() => rmSync(folder, { recursive: true, force: true }))
const shape = (...words: string[]) => run(['shape', ...words, '-c', folder])

t.test('a response has its parts as the gateway gives it to the console', async t => {
  const gateway = await testGateway(t.after, await folderOf())
  const response = await fetch(`${gateway.url}/console/api/orders/7?full=1`)
  const given: unknown = await response.json()
  t.match(given, { data: { unread: 3, owner: { name: 'Wang' }, orders: { code: 0 } } })
  t.match(given, { missing: ['news'] })
  people.seen.length = 0
  const { code, out, err } = await shape('whole', '--live', '--json', '--path', '/orders/7?full=1')
  t.equal(code, 0, err)
  const traced = JSON.parse(out) as Record<string, unknown>
  t.same(traced['after'], given)
  t.same(traced['before'], { code: 0, data: [{ id: 1 }] })
  t.match(traced['operations'], [
    { operation: { parts: ['unread', 'owner', 'news'] }, after: { unread: 3, news: [] } },
    { operation: { drop: ['owner.url'] } },
    { operation: { wrap: 'envelope' } },
    { operation: { missing: ['news'] } }
  ])
  t.same(
    people.seen.map(({ url }) => url),
    ['/owner/7?full=1']
  )
  t.match(err, `200 from ${orders.url} (the part "unread")\n`)
  t.match(err, `500 from ${broken.url} (the part "news")\n`)
  t.match(err, /the part "news" is missing: upstream\.error: down \\u009b2J\n/)
})

t.test(
  '--header is sent to the own upstream, and as a credential to those that take it',
  async t => {
    t.match(await shape('only', '--live', '--header', 'authorization: Bearer x'), {
      code: 0,
      out: /1\. parts:\n[^]*owner\n[^]*"name": "Wang"/
    })
    t.match(await shape('only', '--live'), {
      code: 1,
      out: '',
      err: /The upstream answered 401 \(the part "owner"\)/
    })
    broken.seen.length = 0
    const headers = ['--header', 'authorization: Bearer x', '--header', 'x-tenant: 7']
    t.match(await shape('whole', '--live', '--path', '/orders/7', ...headers), { code: 0 })
    const [asked] = broken.seen
    t.equal(asked?.headers['x-tenant'], '7', 'as of a client')
    t.equal(asked?.headers.authorization, undefined, 'a back-end without credential gets none')
    t.match(orders.seen.at(-1)?.headers, { 'authorization': 'Bearer x', 'x-tenant': '7' })
  }
)

t.test('what cannot be shaped is refused, and says what can', async t => {
  const file = join(folder, 'answer.json')
  writeFileSync(file, '{}')
  t.match(await shape('whole', '--input', file), {
    code: 1,
    out: '',
    err: /adds parts .* \(unread, owner, news\): request all by --live, or .*: shape wrapped --input/
  })
  t.match(await shape('failing', '--live'), { code: 1, err: /answered 500 \(the part "news"\)/ })
  t.match(await shape('whole', '--live'), { code: 2, err: /choose one with --path/ })
  t.match(await shape('whole', '--live', '--path', '/elsewhere'), {
    code: 2,
    err: /paths of its parts are made of \/console\/api\/orders\/:id/
  })
})

t.end()
