import type { IncomingMessage } from 'node:http'
import { mock } from 'node:test'
import t from 'tap'
import { Refusals } from '../../../src/app/overload/refusals.ts'

const requestOf = (socket: { destroyed: boolean; destroy?: () => void }) =>
  ({ socket }) as unknown as IncomingMessage

t.test('sixteen are answered at once, the others sixteen a tick, in their order', t => {
  const refusals = new Refusals()
  t.after(() => refusals.close())
  const answered: number[] = []
  for (let n = 0; n < 40; n++) {
    refusals.add(requestOf({ destroyed: false }), () => answered.push(n))
  }
  t.same([answered.length, refusals.waiting], [16, 24])
  refusals.tick()
  t.same([answered.length, refusals.waiting], [32, 8])
  refusals.tick()
  t.same(answered, Array.from({ length: 40 }).keys().toArray())
  t.equal(refusals.waiting, 0)
  t.end()
})

t.test('a client that has left takes no one’s turn', t => {
  const refusals = new Refusals()
  t.after(() => refusals.close())
  const sockets = Array.from({ length: 50 }, () => ({ destroyed: false }))
  let answers = 0
  for (const socket of sockets) refusals.add(requestOf(socket), () => answers++)
  for (const socket of sockets.slice(16, 40)) socket.destroyed = true
  refusals.tick()
  t.same([answers, refusals.waiting], [26, 0])
  t.end()
})

t.test('a connection is cut where ten thousand wait already', t => {
  const refusals = new Refusals()
  t.after(() => refusals.close())
  let cut = 0
  for (let n = 0; n < 10_020; n++) {
    refusals.add(requestOf({ destroyed: false, destroy: () => cut++ }), () => {})
  }
  t.same([refusals.waiting, cut], [10_000, 4])
  t.end()
})

t.test('after a quiet time sixteen are answered at once again, and the others in time', t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const refusals = new Refusals()
  t.after(() => refusals.close())
  let answers = 0
  for (const expected of [16, 36]) {
    for (let n = 0; n < 20; n++) refusals.add(requestOf({ destroyed: false }), () => answers++)
    t.equal(answers, expected)
    mock.timers.tick(10)
    t.equal(answers, expected + 4)
    mock.timers.tick(100)
  }
  t.end()
})

t.test('where nobody waits and nobody is refused, no timer runs', t => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const refusals = new Refusals()
  t.after(() => refusals.close())
  refusals.add(requestOf({ destroyed: false }), () => {})
  mock.timers.tick(20)
  let ticks = 0
  refusals.tick = () => ticks++
  mock.timers.tick(100)
  t.equal(ticks, 0)
  t.end()
})

t.end()
