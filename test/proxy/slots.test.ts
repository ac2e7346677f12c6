/** Who may use a connection of an upstream, and who waits. */
import t from 'tap'
import { GatewayError } from '../../src/errors.ts'
import { Slots, type Waiter } from '../../src/proxy/slots.ts'

const bounds = { slots: 2, queue: 3, queueTimeout: 60_000 }

/** Slots that are all taken, and what becomes of those who wait. */
function takenSlots(more: Partial<typeof bounds> = {}) {
  const events: string[] = []
  const waits: number[] = []
  const slots = new Slots({ ...bounds, ...more }, ms => waits.push(ms))
  while (slots.tryTake());
  const waiter = (name: string): Waiter => ({
    start: () => events.push(`${name} starts`),
    refuse: ({ code, detail }) => events.push(`${name}: ${code} ${detail.limit}`)
  })
  return { slots, events, waits, wait: (name: string) => slots.wait(waiter(name)) }
}

t.test('they start in the order in which they came, as slots become free', t => {
  const { slots, events, waits, wait } = takenSlots()
  for (const name of ['a', 'b', 'c']) wait(name)
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 2, waiting: 3 })
  slots.release()
  t.same(events, ['a starts'])
  slots.release()
  t.same(events, ['a starts', 'b starts'])
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 2, waiting: 1 })
  t.equal(waits.length, 2)
  t.end()
})

t.test('more than the queue holds are refused; one that leaves makes room', t => {
  const { slots, events, wait } = takenSlots()
  const [leave] = ['a', 'b', 'c'].map(wait)
  const full = { code: 'overloaded', detail: { limit: 'queue', retryAfter: 1 } }
  t.throws(() => wait('d'), full)
  leave?.()
  leave?.()
  wait('d')
  t.throws(() => wait('e'), full)
  slots.release()
  t.same(events, ['b starts'])
  slots.close(new GatewayError('gateway.stopping'))
  t.equal(slots.waiting, 0)
  t.end()
})

t.test('one that waited for too long is refused', async t => {
  // The time-out alone keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const { slots, waits } = takenSlots({ queueTimeout: 1 })
  const refused = await new Promise(resolve =>
    slots.wait({ start: () => resolve('started'), refuse: resolve })
  )
  t.match(refused, { code: 'overloaded', detail: { limit: 'queueTimeout' } })
  t.equal(slots.waiting, 0)
  t.equal(waits.length, 1)
})

t.test('thousands that fail as they start need no deep stack, and leave nothing', t => {
  const { slots } = takenSlots({ queue: 20_000 })
  let starts = 0
  for (let count = 0; count < 20_000; count++) {
    slots.wait({
      start: () => {
        starts++
        slots.release()
      },
      refuse: () => t.fail('refused')
    })
  }
  slots.release()
  slots.release()
  t.equal(starts, 20_000)
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 0, waiting: 0 })
  t.end()
})
