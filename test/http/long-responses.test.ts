/** What long responses cost others. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

/** Nearly as much as `sizes.shape` takes. */
const row = { id: 12345, name: 'A name of some length', state: 1, at: 1795239000, amount: '12.50' }
const list = Array.from({ length: 20_000 }, () => row)
const long = JSON.stringify({ code: 0, data: { list, count: list.length } })
const backend = await testUpstream(t.teardown, ({ url }, response) => {
  const body = url === '/api/long' ? long : '{"plain":true}'
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
})
const each = [
  { rename: { name: 'title' } },
  { convert: { id: 'string', at: 'date-seconds' } },
  { map: { state: { 0: 'unread', 1: 'read' } } }
]
const gateway = await testGateway(t.teardown, {
  backend: backend.url,
  routes: {
    shapes: { page: [{ open: 'code-data' }, { paging: { list: 'list', total: 'count', each } }] },
    routes: { long: { access: 'public', shape: 'page' }, plain: { access: 'public' } }
  }
})

async function timed(path: string): Promise<number> {
  const startedAt = performance.now()
  const response = await fetch(gateway.url + path)
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
  return performance.now() - startedAt
}

t.test('a plain route waits for a few responses of 2 MiB that are shaped, at most', async t => {
  t.ok(long.length > 1.6 * 1024 ** 2 && long.length < 2 * 1024 ** 2, 'long, but within the bound')
  await timed('/api/long')
  const state = { isOver: false }
  const others = async () => {
    const times: number[] = []
    while (!state.isOver) times.push(await timed('/api/long'))
    return times
  }
  const running = others()
  const plains = await Array.fromAsync({ length: 120 }, async () => await timed('/api/plain'))
  state.isOver = true
  const longs = await running
  t.ok(longs.length > 10, 'long responses were shaped all the time')
  const nth = (times: number[], share: number) =>
    times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? Infinity
  // Both come and go by the same loop, and each waits where the machine is busy: in the middle one
  // long response may be before a plain one, at the worst a few.
  for (const share of [0.5, 0.99]) {
    const [plain, other] = [nth(plains, share), nth(longs, share)]
    t.ok(plain < 3 * other, `${share}: ${plain.toFixed(1)} ms, long ${other.toFixed(1)} ms`)
  }
})
