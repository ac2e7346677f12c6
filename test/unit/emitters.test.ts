import { PassThrough, type Stream } from 'node:stream'
import t from 'tap'
import { adopt } from '../../src/observability/emitters.ts'

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

t.end()
