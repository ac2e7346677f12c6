import t from 'tap'
import type { GatewayError } from '../../src/errors.ts'
import { ConnectionQueue } from '../../src/proxy/queue.ts'
import { until } from '../support/until.ts'

const bounds = { connections: 2, queue: 3, queueBytes: 100, queueTimeout: 60_000 }

/** Puts requests into a queue and notes what becomes of them. */
function noting(queue: ConnectionQueue) {
  const started: string[] = []
  const refused: string[] = []
  const ask = (name: string, { bytes = 0, isUpload = false } = {}) => {
    if (queue.tryTake(isUpload)) {
      started.push(name)
      return () => {}
    }
    return queue.wait({
      bytes,
      isUpload,
      start: () => {
        started.push(name)
      },
      refuse: error => {
        refused.push(`${name} ${error.code}`)
      }
    })
  }
  return { started, refused, ask }
}

t.test('requests beyond the connections wait, and start in order', t => {
  const queue = new ConnectionQueue(bounds)
  const { started, ask } = noting(queue)
  for (const name of ['a', 'b', 'c', 'd', 'e']) ask(name)
  t.same(started, ['a', 'b'])
  queue.release(false)
  t.same(started, ['a', 'b', 'c'])
  queue.release(false)
  queue.release(false)
  t.same(started, ['a', 'b', 'c', 'd', 'e'])
  t.equal(queue.running, 2)
  t.equal(queue.waiting, 0)
  t.end()
})

t.test('too many, or too many bytes, are refused at once', t => {
  const code = (ask: () => void) => {
    try {
      ask()
      return 'waits'
    } catch (error) {
      return (error as GatewayError).code
    }
  }
  const full = noting(new ConnectionQueue({ ...bounds, connections: 1 }))
  for (const name of ['a', 'b', 'c', 'd']) {
    t.equal(
      code(() => full.ask(name)),
      'waits'
    )
  }
  t.equal(
    code(() => full.ask('e')),
    'overloaded'
  )
  const heavy = noting(new ConnectionQueue({ ...bounds, connections: 1 }))
  heavy.ask('a')
  t.equal(
    code(() => heavy.ask('b', { bytes: 60 })),
    'waits'
  )
  t.equal(
    code(() => heavy.ask('c', { bytes: 41 })),
    'overloaded'
  )
  t.equal(
    code(() => heavy.ask('d', { bytes: 40 })),
    'waits'
  )
  t.end()
})

t.test('nothing is kept of what left the queue', t => {
  const queue = new ConnectionQueue({ ...bounds, queue: 1000, queueBytes: 100_000 })
  const { started, ask } = noting(queue)
  ask('a')
  ask('b')
  const leave = Array.from({ length: 1000 }, (_, n) => ask(`w${n}`, { bytes: 100 }))
  t.equal(queue.waitingBytes, 100_000)
  // From its middle outwards, and one of them twice.
  for (const n of [500, 0, 999, 500, ...leave.keys()]) leave[n]?.()
  t.same([queue.waiting, queue.waitingBytes], [0, 0])
  queue.release(false)
  t.same(started, ['a', 'b'])
  t.equal(queue.running, 1)
  t.end()
})

t.test('whoever waits too long is refused, in order, and the others go on waiting', async t => {
  const queue = new ConnectionQueue({ ...bounds, queueTimeout: 50 })
  const { started, refused, ask } = noting(queue)
  for (const name of ['a', 'b', 'c']) ask(name)
  ask('d')
  await until('all who waited were refused', () => refused.length === 2)
  t.same(refused, ['c overloaded', 'd overloaded'])
  ask('e')
  queue.release(false)
  t.same(started, ['a', 'b', 'e'])
})

t.test('uploads get half of the connections, and stand in nobody’s way', t => {
  const queue = new ConnectionQueue({ ...bounds, connections: 4, queue: 10 })
  const { started, ask } = noting(queue)
  for (const name of ['u1', 'u2', 'u3', 'u4']) ask(name, { isUpload: true })
  ask('a')
  ask('b')
  ask('c')
  t.same(started, ['u1', 'u2', 'a', 'b'])
  queue.release(true)
  t.same(started.slice(4), ['u3'], 'the upload has waited longer')
  queue.release(false)
  t.same(started.slice(5), ['c'])
  queue.release(false)
  t.equal(queue.waiting, 1, 'a connection is free, but not for a third upload')
  t.ok(queue.tryTake(false))
  t.end()
})

t.test('many that fail as soon as they start need no stack', t => {
  const queue = new ConnectionQueue({ ...bounds, connections: 1, queue: 100_000 })
  queue.tryTake(false)
  let failed = 0
  for (let n = 0; n < 100_000; n++) {
    queue.wait({
      bytes: 0,
      isUpload: false,
      refuse: () => {},
      start: () => {
        failed++
        queue.release(false)
      }
    })
  }
  queue.release(false)
  t.equal(failed, 100_000)
  t.equal(queue.running, 0)
  t.end()
})

t.test('a queue that closes refuses all who wait', t => {
  const queue = new ConnectionQueue(bounds)
  const { refused, ask } = noting(queue)
  for (const name of ['a', 'b', 'c']) ask(name)
  ask('u', { isUpload: true })
  queue.close({ code: 'gateway.stopping' } as GatewayError)
  t.same(refused.toSorted(), ['c gateway.stopping', 'u gateway.stopping'])
  t.equal(queue.waiting, 0)
  t.end()
})

t.end()
