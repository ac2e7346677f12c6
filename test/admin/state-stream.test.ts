/** Live views over real sockets: slow readers, ends of sessions. */
import { connect, type Socket } from 'node:net'
import Fastify, { type FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { StateStreams } from '../../src/admin/state-stream.ts'
import { until } from '../support/until.ts'

/** Linux lets the sockets of a connection hold four of them on their way, and seldom does. */
const held = 4
const large = 'x'.repeat(8 * 1024 * 1024)

interface Options {
  readonly read: () => Promise<object>
  readonly isAllowed?: (request: FastifyRequest) => Promise<boolean>
  readonly maxStallMs?: number
  readonly maxStreams?: number
  readonly everyMs?: number
}

async function listenerWith(t: Test, { isAllowed = async () => true, ...options }: Options) {
  const app = Fastify()
  const streams = new StateStreams({ name: 'state', everyMs: 20, isAllowed, ...options })
  streams.endWith(app)
  app.get('/', async (request, reply) => {
    await streams.open(request, reply)
    return reply
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const open = () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    return socket
  }
  return { app, streams, open }
}

function textOf(socket: Socket): () => string {
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}

/** The numbers of the events so far: the events themselves are too large to keep. */
function numbersOf(socket: Socket): () => number[] {
  const numbers: number[] = []
  let rest = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    const text = rest + chunk
    numbers.push(...Array.from(text.matchAll(/"number":(\d+),/g), ([, each]) => Number(each)))
    // A number that is cut here is read with the next chunk.
    rest = text.slice(Math.max(text.lastIndexOf(',') + 1, text.length - 40))
  })
  return () => numbers
}

t.test('a slow reader delays nobody, misses events and gets the newest', async t => {
  let number = 0
  // More events than a busy machine can carry would let the slow reader stall for too long.
  const read = async () => ({ number: ++number, large })
  const { open } = await listenerWith(t, { read, everyMs: 200 })
  const slow = open()
  await new Promise(resolve => {
    slow.once('data', resolve)
  })
  slow.pause()
  const quick = numbersOf(open())
  await until('the quick reader has ten events', () => quick().length >= 10)
  const missed = number
  const late = numbersOf(slow)
  slow.resume()
  await until('the slow reader has a new event', () => (late().at(-1) ?? 0) > missed)
  const queued = late().filter(each => each > 2 && each < missed - 1)
  t.ok(queued.length <= held, `nothing was queued for it: ${queued.length} of ${missed} events`)
})

t.test('a reader that takes nothing for too long is dropped', async t => {
  const { streams, open } = await listenerWith(t, {
    read: async () => ({ large }),
    maxStallMs: 100
  })
  const slow = open()
  await new Promise(resolve => {
    slow.once('data', resolve)
  })
  slow.pause()
  t.equal(streams.size, 1)
  await until('it is dropped', () => streams.size === 0)
})

t.test('a stream ends with the session of its operator, not with an outage', async t => {
  let state: 'alive' | 'unknown' | 'over' = 'alive'
  let asked = 0
  const { streams, open } = await listenerWith(t, {
    read: async () => ({}),
    isAllowed: async () => {
      asked++
      if (state === 'unknown') throw new Error('the store does not answer')
      return state === 'alive'
    }
  })
  const text = textOf(open())
  await until('the session was asked for', () => asked > 0)
  state = 'unknown'
  const before = asked
  await until('it was asked for without an answer', () => asked > before + 2)
  t.equal(streams.size, 1)
  state = 'over'
  await until('the stream has ended', () => text().includes('event: end'))
  t.equal(streams.size, 0)
})

t.test('what cannot be read once is read the next time', async t => {
  let number = 0
  const { open } = await listenerWith(t, {
    read: async () => {
      if (++number % 2 === 0) throw new Error('not this time')
      return { number }
    }
  })
  const text = textOf(open())
  await until('events go on', () => text().includes('"number":5'))
  t.notOk(text().includes('"number":2'))
})

t.test('one view too many is refused, until another is closed', async t => {
  const { streams, open } = await listenerWith(t, { read: async () => ({}), maxStreams: 2 })
  const [first, second] = [open(), open()]
  for (const text of [first, second].map(textOf)) {
    await until('it is open', () => text().includes('event: state'))
  }
  const third = textOf(open())
  await until('it is refused', () => third().includes('2 live views are open already'))
  t.equal(streams.size, 2)
  first.destroy()
  await until('it is closed', () => streams.size === 1)
  const fourth = textOf(open())
  await until('there is room again', () => fourth().includes('event: state'))
})

t.test('a reading that takes long delays the next, and none is made beside it', async t => {
  const gate = Promise.withResolvers<void>()
  let reads = 0
  const slow = await listenerWith(t, {
    read: async () => {
      if (++reads > 1) await gate.promise
      return { reads }
    }
  })
  let ticks = 0
  const quick = await listenerWith(t, { read: async () => ({ ticks: ++ticks }) })
  const text = textOf(slow.open())
  await until('the second one is under way', () => reads === 2)
  quick.open()
  await until('time has passed', () => ticks > 5)
  t.equal(reads, 2)
  gate.resolve()
  await until('they go on', () => reads > 3)
  t.ok(text().includes('"reads":2'))
})

t.test('a view that is opened after all were closed gets events too', async t => {
  let number = 0
  const { streams, open } = await listenerWith(t, { read: async () => ({ number: ++number }) })
  for (const round of [1, 2]) {
    const socket = open()
    const text = textOf(socket)
    await until(`three events, round ${round}`, () => text().split('event: state').length > 3)
    socket.destroy()
    await until('it is closed', () => streams.size === 0)
  }
})

t.test('a listener that closes ends its views, and waits for none', async t => {
  const { app, open } = await listenerWith(t, { read: async () => ({}) })
  const text = textOf(open())
  await until('it is open', () => text().includes('event: state'))
  await app.close()
  await until('it was told', () => text().includes('event: end'))
})
