import fc from 'fast-check'
import t from 'tap'
import type { GatewayError } from '../../src/errors.ts'
import { ConnectionQueue } from '../../src/proxy/queue.ts'
import { seed } from '../support/seed.ts'
import { until } from '../support/until.ts'

const bounds = { connections: 2, queue: 3, queueBytes: 100, queueTimeout: 60_000 }

/** Puts requests into a queue and notes what becomes of them. */
function noting(queue: ConnectionQueue) {
  const started: string[] = []
  const refused: string[] = []
  const ask = (name: string, { bytes = 0, isUpload = false, user = '' } = {}) => {
    if (queue.tryTake(isUpload)) {
      started.push(name)
      return () => {}
    }
    return queue.wait({
      user,
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
      user: `user ${n % 7}`,
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

t.test('the burst of one user delays nobody else', t => {
  const queue = new ConnectionQueue({ ...bounds, connections: 1, queue: 1000 })
  const { started, ask } = noting(queue)
  ask('running')
  for (let n = 0; n < 500; n++) ask(`burst ${n}`, { user: 'burst' })
  for (const name of ['b', 'c']) for (const n of [1, 2]) ask(`${name}${n}`, { user: name })
  for (let n = 0; n < 6; n++) queue.release(false)
  t.same(started.slice(1), ['burst 0', 'b1', 'c1', 'burst 1', 'b2', 'c2'])
  t.equal(queue.waitingUsers, 1)
  t.end()
})

t.test('a queue that is full of one user’s burst takes the requests of others all the same', t => {
  const queue = new ConnectionQueue({ ...bounds, connections: 1, queue: 6 })
  const { started, refused, ask } = noting(queue)
  ask('running')
  for (let n = 0; n < 6; n++) ask(`burst ${n}`, { user: 'burst', isUpload: n === 4 })
  t.throws(() => ask('burst 6', { user: 'burst' }), { code: 'overloaded' })
  for (const n of [0, 1, 2]) ask(`b${n}`, { user: 'b' })
  t.same(refused, ['burst 5 overloaded', 'burst 4 overloaded', 'burst 3 overloaded'])
  t.throws(() => ask('b3', { user: 'b' }), { code: 'overloaded' }, 'both have as many')
  ask('c0', { user: 'c' })
  ask('d0', { user: 'd' })
  for (const name of ['c1', 'd1']) {
    t.throws(() => ask(name, { user: name.slice(0, 1) }), { code: 'overloaded' })
  }
  t.equal(queue.waiting, 6)
  for (let n = 0; n < 6; n++) queue.release(false)
  t.same(started.slice(1).toSorted(), ['b0', 'b1', 'burst 0', 'burst 1', 'c0', 'd0'])
  t.same([queue.running, queue.waiting, queue.waitingUsers], [1, 0, 0])
  t.end()
})

t.test('of 100,000 users who left, in any order and way, nothing is kept', t => {
  const count = 100_000
  const queue = new ConnectionQueue({ ...bounds, connections: 1, queue: count, queueBytes: count })
  queue.tryTake(false)
  const ask = (n: number) =>
    queue.wait({
      user: n % 3 === 0 ? undefined : `user ${n}`,
      bytes: 1,
      isUpload: n % 2 === 0,
      start: () => queue.release(n % 2 === 0),
      refuse: () => {}
    })
  const leave = Array.from({ length: count }, (_, n) => ask(n))
  t.same([queue.waiting, queue.waitingUsers], [count, Math.floor((count * 2) / 3)])
  for (let n = 0; n < count; n += 4) leave[n]?.()
  queue.release(false)
  t.same(sizesOf(queue), [0, 0, 0, 0])
  queue.tryTake(false)
  for (let n = 0; n < 1000; n++) ask(n)
  queue.close({ code: 'gateway.stopping' } as GatewayError)
  t.same(sizesOf(queue), [1, 0, 0, 0])
  t.end()
})

function sizesOf(queue: ConnectionQueue): number[] {
  return [queue.running, queue.waiting, queue.waitingBytes, queue.waitingUsers]
}

type Step =
  | { readonly kind: 'ask'; readonly user: number; readonly isUpload: boolean }
  | { readonly kind: 'leave'; readonly nth: number }
  | { readonly kind: 'release' }

interface Asked {
  readonly user: number
  readonly isUpload: boolean
  readonly order: number
  leave: () => void
  /** Starts of each other user since this one waits, or since its user's last start. */
  readonly startsOfOthers: Map<number, number>
}

/** Runs the steps. @throws where an order or a share is not kept */
function simulate(steps: readonly Step[], maxWaiting: number): void {
  const queue = new ConnectionQueue({ ...bounds, connections: 3, queue: maxWaiting })
  const waiting = new Set<Asked>()
  const running: boolean[] = []
  let order = 0
  const onStart = (asked: Asked) => {
    waiting.delete(asked)
    running.push(asked.isUpload)
    for (const other of waiting) {
      if (other.user === asked.user) {
        if (other.isUpload === asked.isUpload && other.order < asked.order) {
          throw new Error('a later request of a user started first')
        }
        other.startsOfOthers.clear()
        continue
      }
      // An upload may have to wait for other uploads.
      if (other.isUpload) continue
      const starts = (other.startsOfOthers.get(asked.user) ?? 0) + 1
      other.startsOfOthers.set(asked.user, starts)
      if (starts > 1) throw new Error('a user had two turns while another waited for one')
    }
  }
  for (const step of steps) {
    if (step.kind === 'release') {
      const isUpload = running.shift()
      if (isUpload !== undefined) queue.release(isUpload)
    } else if (step.kind === 'leave') {
      const asked = [...waiting][step.nth % Math.max(1, waiting.size)]
      if (asked === undefined) continue
      waiting.delete(asked)
      asked.leave()
    } else {
      const { user, isUpload } = step
      if (queue.tryTake(isUpload)) {
        running.push(isUpload)
        continue
      }
      const asked: Asked = { user, isUpload, order: order++, startsOfOthers: new Map(), leave() {} }
      try {
        asked.leave = queue.wait({
          user: `user ${user}`,
          bytes: 0,
          isUpload,
          start: () => onStart(asked),
          refuse: () => waiting.delete(asked)
        })
      } catch (error) {
        const counts = Map.groupBy(waiting, each => each.user)
        const own = counts.get(user)?.length ?? 0
        if (waiting.size < maxWaiting) throw error
        for (const { length } of counts.values()) {
          if (length <= own + 1) continue
          throw new Error('another with more did not give way', { cause: error })
        }
        continue
      }
      waiting.add(asked)
    }
    if (queue.waiting !== waiting.size) throw new Error('the count of the waiting is wrong')
    const users = new Set(Array.from(waiting, ({ user }) => user))
    if (queue.waitingUsers !== users.size) throw new Error('the count of their users is wrong')
  }
}

t.test('each user’s requests start in order, and of k users each has every k-th turn', async t => {
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('ask' as const),
        user: fc.nat(5),
        isUpload: fc.boolean()
      })
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), nth: fc.nat(100) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('release' as const) }) }
  )
  const steps = fc.array(step, { minLength: 20, maxLength: 200 })
  fc.assert(fc.property(steps, fc.constantFrom(4, 10, 10_000), simulate), {
    seed,
    numRuns: 300
  })
  t.pass()
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
