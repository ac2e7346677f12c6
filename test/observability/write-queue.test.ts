import { spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WriteQueue } from '../../src/observability/write-queue.ts'
import { until } from '../support/until.ts'

/** A named pipe, which never waits for its other end, and may get another reader. */
function piped(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'write-queue-'))
  const pipe = join(folder, 'pipe')
  spawnSync('mkfifo', [pipe])
  const openReader = () => openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  let reader = openReader()
  const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  t.teardown(() => {
    for (const each of [reader, fd]) closeSync(each)
    rmSync(folder, { recursive: true, force: true })
  })
  let idle = 0
  const dropped: number[] = []
  let text = ''
  const buffer = Buffer.alloc(1024 * 1024)
  return {
    queue: new WriteQueue({
      fd,
      onIdle: () => idle++,
      onDropped: bytes => dropped.push(bytes)
    }),
    idle: () => idle,
    dropped,
    /** What has come so far. */
    read: () => {
      try {
        text += buffer.toString('latin1', 0, readSync(reader, buffer))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      }
      return text
    },
    leave: () => closeSync(reader),
    comeBack: () => {
      reader = openReader()
      text = ''
    }
  }
}

const numbered = (count: number, length: number) =>
  Array.from({ length: count }, (_, number) => `${number}`.padStart(length, '.'))

t.test('a reader that was slow gets all, in order and whole', async t => {
  const { queue, idle, read } = piped(t)
  const chunks = [...numbered(3000, 200), ...numbered(5, 60_000)]
  for (const chunk of chunks) queue.write(Buffer.from(chunk))
  await until('all has come', () => read().length >= chunks.join('').length)
  t.equal(read(), chunks.join(''))
  await until('that is told', () => idle() === 1)
})

t.test('at the end what waits is written at once, as far as the reader takes it', async t => {
  const { queue, idle, read } = piped(t)
  for (const chunk of numbered(3000, 200)) queue.write(Buffer.from(chunk))
  queue.flushSync()
  t.equal(idle(), 0)
  await until('all has come', () => read().length === 600_000)
  await until('that is told', () => idle() === 1)
})

t.test('without a reader chunks are dropped, and the next reader gets the next ones', async t => {
  const { queue, idle, dropped, read, leave, comeBack } = piped(t)
  leave()
  queue.write(Buffer.from('by a thread'))
  await until('it is dropped', () => idle() === 1)
  queue.write(Buffer.from('by a thread'))
  queue.write(Buffer.from('at the end'))
  queue.flushSync()
  await until('both are dropped', () => idle() === 2)
  comeBack()
  queue.write(Buffer.from('for the next one'))
  await until('it has come', () => read() !== '')
  t.equal(read(), 'for the next one')
  await until('it is told how much was dropped', () => dropped.length > 0)
  t.same(dropped, [2 * 'by a thread'.length + 'at the end'.length])
})

t.test('while the reader stands still, what is too much is dropped', async t => {
  const { queue, dropped, read } = piped(t)
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  for (let count = 0; count < 20; count++) queue.write(chunk)
  await until('the rest has come', () => read().length >= 16 * chunk.length)
  queue.write(Buffer.from('end'))
  await until('and what came later', () => read().endsWith('end'))
  t.equal(read().length, 16 * chunk.length + 3)
  t.same(dropped, [4 * chunk.length])
})
