import { PassThrough, Readable, type Stream } from 'node:stream'
import t from 'tap'
import { adopt, pipe } from '../../src/observability/emitters.ts'

// Not events.once(), which listens to errors itself.
const closed = (stream: Stream) => new Promise<void>(resolve => stream.once('close', resolve))

t.test('an adopted stream that fails without anyone else listening ends alone', async t => {
  const stream = adopt(new PassThrough())
  stream.destroy(new Error('broken'))
  await closed(stream)
  t.ok(stream.destroyed)
})

t.test('what adopts a stream may say what becomes of its errors', async t => {
  const errors: Error[] = []
  const stream = adopt(new PassThrough(), error => errors.push(error))
  stream.destroy(new Error('broken'))
  await closed(stream)
  t.match(errors, [{ message: 'broken' }])
})

t.test('a source that fails or ends early destroys what it is piped to', async t => {
  for (const reason of [new Error('broken'), undefined]) {
    const from = adopt(new Readable({ read: () => {} }))
    const to = pipe(from, adopt(new PassThrough()))
    from.destroy(reason)
    await closed(to)
    t.equal(to.errored ?? undefined, reason)
  }
})

t.test('a source that ends as it should ends what it is piped to', async t => {
  const from = adopt(Readable.from(['a', 'b']))
  const text = await pipe(from, adopt(new PassThrough())).setEncoding('utf8').toArray()
  t.equal(text.join(''), 'ab')
})

t.end()
