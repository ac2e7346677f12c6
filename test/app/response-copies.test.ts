/** The store of copies by itself: what a whole gateway shows is in kept-reads.test.ts. */
import { mock } from 'node:test'
import t from 'tap'
import { ResponseCopies } from '../../src/app/response-copies.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { freshnessOf } from '../../src/proxy/freshness.ts'
import type { Live } from '../../src/session/evaluate.ts'

const live = { key: 'k', session: { identity: { roles: [] } } } as unknown as Live
const copyOf = (length: number) => ({
  headers: {},
  bytes: Buffer.alloc(length),
  freshness: freshnessOf({}, 0, 0),
  receivedAt: 0,
  target: 'b /list'
})

t.test('a session whose copy has grown too large is looked up no more', t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  let lookUps = 0
  const copies = new ResponseCopies({
    sessions: {
      getCachedByKey: () => {
        lookUps++
        return live
      },
      getByKey: () => Promise.resolve({ live })
    },
    metrics: createMetrics(),
    onError: error => t.fail(String(error))
  })
  t.after(() => copies.close())
  const limits = { copies: { maxEntries: 10, maxBytes: 10_000 } }
  copies.activate(limits as Parameters<ResponseCopies['activate']>[0])
  copies.set('list', live, 1, copyOf(1000))
  mock.timers.tick(1000)
  t.equal(lookUps, 1)
  copies.set('list', live, 2, copyOf(20_000))
  t.equal(copies.get('list'), undefined)
  mock.timers.tick(5000)
  t.equal(lookUps, 1)
  t.end()
})
