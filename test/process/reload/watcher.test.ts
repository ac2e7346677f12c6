import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { isAsRead, watchFiles } from '../../../src/process/watch.ts'
import { createInputs } from '../../../src/config/load/inputs.ts'
import { until } from '../../support/until.ts'

function watched(
  cleanUp: (undo: () => unknown) => void,
  files: (folder: string) => readonly string[],
  everyMs = 20
) {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-watch-'))
  const names = files(folder)
  const seen = { changes: 0 }
  const watch = watchFiles({
    files: names,
    everyMs,
    onChange: () => {
      seen.changes++
    }
  })
  // What watches keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  cleanUp(() => {
    clearInterval(alive)
    watch.close()
    rmSync(folder, { recursive: true })
  })
  const changed = (times: number) => until(`${times} changes are told`, () => seen.changes >= times)
  return { folder, watch, changed, changes: () => seen.changes }
}

t.test('a file that is written, replaced, removed and made again is told each time', async t => {
  const { folder, changed } = watched(t.after, at => {
    writeFileSync(join(at, 'a'), '1')
    return [join(at, 'a')]
  })
  const file = join(folder, 'a')
  appendFileSync(file, '2')
  await changed(1)
  writeFileSync(join(folder, 'b'), '3')
  renameSync(join(folder, 'b'), file)
  await changed(2)
  rmSync(file)
  await changed(3)
  writeFileSync(file, '4')
  await changed(4)
  appendFileSync(file, '5')
  await changed(5)
})

t.test('a file behind links is told wherever on the way it changes', async t => {
  const { folder, changed } = watched(t.after, at => {
    for (const version of ['one', 'two']) {
      mkdirSync(join(at, version))
      writeFileSync(join(at, version, 'a'), version)
    }
    mkdirSync(join(at, 'mounted'))
    symlinkSync('../one', join(at, 'mounted', 'data'))
    symlinkSync('data/a', join(at, 'mounted', 'a'))
    return [join(at, 'mounted', 'a')]
  })
  appendFileSync(join(folder, 'one', 'a'), '!')
  await changed(1)
  symlinkSync('../two', join(folder, 'mounted', 'next'))
  renameSync(join(folder, 'mounted', 'next'), join(folder, 'mounted', 'data'))
  await changed(2)
  appendFileSync(join(folder, 'two', 'a'), '!')
  await changed(3)
})

t.test('a file that is not there yet is found with its folders', async t => {
  const { folder, changed } = watched(t.after, at => [join(at, 'not', 'there', 'a')])
  mkdirSync(join(folder, 'not', 'there'), { recursive: true })
  writeFileSync(join(folder, 'not', 'there', 'a'), '1')
  await changed(1)
})

t.test('other files of the folder are none of its business', async t => {
  const { folder, changed, changes } = watched(t.after, at => {
    writeFileSync(join(at, 'a'), '1')
    return [join(at, 'a')]
  })
  const lines = setInterval(() => appendFileSync(join(folder, 'log'), 'a line\n'), 5)
  appendFileSync(join(folder, 'a'), '2')
  await changed(1)
  clearInterval(lines)
  t.equal(changes(), 1)
})

t.test('a file that is still being written is told once, when it is whole', async t => {
  const { folder, changed, changes } = watched(
    t.after,
    at => {
      writeFileSync(join(at, 'a'), '')
      return [join(at, 'a')]
    },
    100
  )
  const file = join(folder, 'a')
  // Each look finds it longer, also where this machine is busy: both are timers of this process.
  const writing = setInterval(() => appendFileSync(file, 'x'), 5)
  await until('it is long', () => statSync(file).size > 100)
  t.equal(changes(), 0, 'not while it is written')
  clearInterval(writing)
  await changed(1)
  t.equal(changes(), 1)
})

t.test(
  'files that are followed from now on are told once, since nobody saw what they held before',
  async t => {
    const { folder, watch, changed } = watched(t.after, at => {
      for (const name of ['a', 'b']) writeFileSync(join(at, name), '1')
      return [join(at, 'a')]
    })
    watch.follow([join(folder, 'a')])
    watch.follow([join(folder, 'a'), join(folder, 'b')])
    await changed(1)
    appendFileSync(join(folder, 'b'), '2')
    await changed(2)
  }
)

t.test('whether files still hold what was read of them', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-watch-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'a')
  const inputs = createInputs()
  t.throws(() => inputs.read(file))
  t.ok(isAsRead(inputs.digests()), 'a file that was not there, and is not')
  writeFileSync(file, '1')
  t.notOk(isAsRead(inputs.digests()))
  inputs.read(file)
  t.ok(isAsRead(inputs.digests()))
  writeFileSync(file, '2')
  t.notOk(isAsRead(inputs.digests()))
})
