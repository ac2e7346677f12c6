/** Who may use a connection of an upstream, and who waits. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { Slots } from '../../src/limits/slots.ts'
import { shorterTimes } from '../support/shorter-times.ts'

/** Slots that are all taken, and what becomes of those who wait. */
function takenSlots(queue = 3) {
  const events: string[] = []
  const waits: number[] = []
  const slots = new Slots(2, queue, ms => waits.push(ms))
  while (slots.tryTake());
  const wait = async (name: string, signal?: AbortSignal) => {
    try {
      await slots.take(signal)
      events.push(`${name} starts`)
    } catch (error) {
      const { code, detail } = error as GatewayError
      events.push(`${name}: ${code} ${detail.limit ?? ''}`)
    }
  }
  return { slots, events, waits, wait }
}

t.test('they start in the order in which they came, as slots become free', async t => {
  const { slots, events, waits, wait } = takenSlots()
  for (const name of ['a', 'b', 'c']) void wait(name)
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 2, waiting: 3 })
  slots.release()
  await nextTurn()
  t.same(events, ['a starts'])
  slots.release()
  await nextTurn()
  t.same(events, ['a starts', 'b starts'])
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 2, waiting: 1 })
  t.equal(waits.length, 2)
})

t.test('more than the queue holds are refused; one that leaves makes room', async t => {
  const { slots, events, wait } = takenSlots()
  const leaving = new AbortController()
  void wait('a', leaving.signal)
  for (const name of ['b', 'c', 'd']) void wait(name)
  await nextTurn()
  t.same(events, ['d: overloaded queue'])
  leaving.abort(new GatewayError('gateway.stopping'))
  await nextTurn()
  t.equal(events.at(-1), 'a: gateway.stopping ')
  void wait('e')
  await wait('f')
  t.equal(events.at(-1), 'f: overloaded queue')
  slots.release()
  await nextTurn()
  t.equal(events.at(-1), 'b starts')
  slots.close(new GatewayError('gateway.stopping'))
  await nextTurn()
  t.same(events.slice(-2), ['c: gateway.stopping ', 'e: gateway.stopping '])
  t.equal(slots.waiting, 0)
  await wait('g', leaving.signal)
  t.equal(events.at(-1), 'g: gateway.stopping ', 'one that has left does not begin to wait')
})

t.test('one that waited for too long is refused', async t => {
  shorterTimes(t.after, { 10_000: 1 })
  // The time-out alone keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const { slots, events, waits, wait } = takenSlots()
  await wait('a')
  t.same(events, ['a: overloaded queueTimeout'])
  t.equal(slots.waiting, 0)
  t.equal(waits.length, 1)
})

t.test('thousands that fail as they start leave nothing', async t => {
  const { slots, wait } = takenSlots(20_000)
  const all = Array.from({ length: 20_000 }, () => wait('x').then(() => slots.release()))
  slots.release()
  slots.release()
  await Promise.all(all)
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 0, waiting: 0 })
})
