/** Who waits for a free place, and in which order. With clients: http/queues.test.ts. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { Slots } from '../../src/limits/slots.ts'

t.test('they start in the order in which they came; one that leaves makes room', async t => {
  const slots = new Slots(2, 3)
  while (slots.tryTake());
  const events: string[] = []
  const wait = (name: string, signal?: AbortSignal) => {
    void slots.take(signal).then(
      () => events.push(`${name} starts`),
      ({ code }: GatewayError) => events.push(`${name}: ${code}`)
    )
  }
  /** What happened since. */
  const news = async () => {
    await nextTurn()
    return events.splice(0)
  }
  const leaving = new AbortController()
  for (const name of ['a', 'b']) wait(name)
  wait('c', leaving.signal)
  t.match({ running: slots.running, waiting: slots.waiting }, { running: 2, waiting: 3 })
  wait('d')
  t.same(await news(), ['d: overloaded'], 'the queue is full')
  slots.release()
  t.same(await news(), ['a starts'])
  leaving.abort(new GatewayError('request.malformed'))
  t.same(await news(), ['c: request.malformed'])
  for (const name of ['e', 'f', 'g']) wait(name)
  t.same(await news(), ['g: overloaded'])
  slots.release()
  t.same(await news(), ['b starts'])
  slots.release()
  slots.release()
  t.same(await news(), ['e starts', 'f starts'])
  t.equal(slots.waiting, 0)
  wait('h', leaving.signal)
  t.same(await news(), ['h: request.malformed'], 'one that has left does not begin to wait')
})
