import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

/** Nearly as much as `sizes.shape` takes. */
const row = { id: 12345, name: 'A name of some length', state: 1, at: 1795239000, amount: '12.50' }
const rows = Array.from({ length: 20_000 }, () => row)

t.test(
  'a plain route waits for a few long responses at most, while another client keeps fetching 2 MiB that are shaped',
  async t => {
    const long = JSON.stringify({ code: 0, data: { list: rows, count: rows.length } })
    t.ok(long.length > 1.6 * 1024 ** 2 && long.length < 2 * 1024 ** 2, 'long, but within the bound')
    const backend = await testUpstream(t.after, ({ url }, response) => {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(url === '/long' ? long : '{"plain":true}')
    })
    const each = [
      { rename: { name: 'title' } },
      { convert: { id: 'string', at: 'date-seconds' } },
      { map: { state: { 0: 'unread', 1: 'read' } } }
    ]
    const route = { upstream: 'b', access: 'public' }
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { b: { url: backend.url } },
        shapes: {
          page: [{ open: 'code-data' }, { paging: { list: 'list', total: 'count', each } }]
        },
        routes: {
          long: { ...route, path: '/api/long', rewrite: '/long', shape: 'page' },
          plain: { ...route, path: '/api/plain', rewrite: '/plain' }
        }
      }
    })
    const timed = async (path: string) => {
      const startedAt = performance.now()
      const response = await fetch(gateway.url + path)
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
      return performance.now() - startedAt
    }
    const end = { isReached: false }
    const longOnes: number[] = []
    const others = async () => {
      while (!end.isReached) longOnes.push(await timed('/api/long'))
    }
    await timed('/api/long')
    const other = others()
    const plainOnes: number[] = []
    for (let index = 0; index < 120; index++) plainOnes.push(await timed('/api/plain'))
    end.isReached = true
    await other
    const nth = (times: number[], share: number) =>
      times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? Infinity
    t.ok(longOnes.length > 10, 'long responses were shaped all the time')
    // Both come and go by the same loop, and each waits where the machine is busy: in the middle one
    // long response may be before a plain one, at the worst a few.
    for (const share of [0.5, 0.99]) {
      const [plain, long] = [nth(plainOnes, share), nth(longOnes, share)]
      t.ok(plain < 3 * long, `${share}: ${plain.toFixed(1)} ms, long ${long.toFixed(1)} ms`)
    }
  }
)
