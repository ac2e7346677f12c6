import fc from 'fast-check'
import t from 'tap'
import { CollectedBytes } from '../../src/proxy/collected-bytes.ts'
import { seed } from '../support/seed.ts'

function join(expected: number | undefined, chunks: readonly Uint8Array[]): Buffer {
  const collected = new CollectedBytes(expected)
  for (const chunk of chunks) collected.add(Buffer.from(chunk))
  return collected.take()
}

t.test('all chunks are joined in their order, whatever length was announced', async () => {
  const chunk = fc.uint8Array({ maxLength: 9000 })
  const expected = fc.option(fc.nat({ max: 50_000 }), { nil: undefined })
  fc.assert(
    fc.property(expected, fc.array(chunk, { maxLength: 12 }), (announced, chunks) => {
      const bytes = join(announced, chunks)
      return bytes.equals(Buffer.concat(chunks)) && bytes.length === bytes.buffer.byteLength
    }),
    { seed }
  )
})

t.test('memory of an announced length is neither moved nor larger', async t => {
  const collected = new CollectedBytes(40_000)
  for (let index = 0; index < 4; index++) collected.add(Buffer.alloc(10_000, index))
  const bytes = collected.take()
  t.equal(bytes.length, 40_000)
  t.equal(bytes.buffer.byteLength, 40_000)
  t.equal(bytes.byteOffset, 0)
})

t.test('a chunk that changes later does not change what was collected', async t => {
  const chunk = Buffer.from('first')
  const collected = new CollectedBytes(undefined)
  collected.add(chunk)
  chunk.fill('x')
  t.equal(collected.take().toString(), 'first')
})

t.test('a hundred thousand chunks of a byte are moved a few times, not each time', async t => {
  const byte = Buffer.from('b')
  const collected = new CollectedBytes(undefined)
  let moves = 0
  const { transfer } = ArrayBuffer.prototype
  t.after(() => Object.assign(ArrayBuffer.prototype, { transfer }))
  Object.assign(ArrayBuffer.prototype, {
    transfer(this: ArrayBuffer, length: number) {
      moves++
      return transfer.call(this, length)
    }
  })
  for (let index = 0; index < 100_000; index++) collected.add(byte)
  t.equal(collected.take().length, 100_000)
  t.ok(moves <= 5, String(moves))
})
