/** The record of one request. */
import t from 'tap'
import { Trail } from '../../src/observability/trail.ts'

t.test('a trail keeps the path without the query, and at most 512 characters of it', async t => {
  const pathOf = (target: string) => new Trail('id', 'GET', target, '192.0.2.1').path
  t.equal(pathOf('/api/orders'), '/api/orders')
  t.equal(pathOf('/api/orders?token=secret'), '/api/orders')
  t.equal(pathOf('/api/orders?a=/x?b'), '/api/orders')
  t.equal(pathOf(`/${'x'.repeat(600)}`).length, 512)
  t.equal(pathOf(`/${'x'.repeat(600)}?token=secret`).length, 512)
  t.equal(pathOf(''), '')
})

t.test('a trail says when the request began, by both clocks', async t => {
  const before = [Date.now(), performance.now()] as const
  const trail = new Trail('id', 'GET', '/', '192.0.2.1')
  t.ok(trail.at >= before[0] && trail.at <= Date.now())
  t.ok(trail.startedAt >= before[1] && trail.startedAt <= performance.now())
})
