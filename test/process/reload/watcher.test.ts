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
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { createInputs, fingerprintOf } from '../../../src/config/read/inputs.ts'
import { watchFiles } from '../../../src/process/watch.ts'
import { until } from '../../support/until.ts'

function watched(
  cleanUp: (undo: () => unknown) => void,
  files: (folder: string) => readonly string[],
  everyMs = 20
) {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-watch-'))
  const names = files(folder)
  const seen = { changes: 0 }
  const read = Object.fromEntries(names.map(name => [name, fingerprintOf(name)]))
  const watch = watchFiles(read, () => void seen.changes++, everyMs)
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
  'what changes between being read and being watched is told, and no more than that',
  async t => {
    const { folder, watch, changed, changes } = watched(t.after, at => {
      for (const name of ['a', 'b']) writeFileSync(join(at, name), '1')
      return [join(at, 'a')]
    })
    const read = () => {
      const inputs = createInputs()
      for (const name of ['a', 'b']) inputs.read(join(folder, name))
      t.throws(() => inputs.read(join(folder, 'c')))
      return inputs.fingerprints()
    }
    watch.follow(read())
    await wait(200)
    t.equal(changes(), 0)
    appendFileSync(join(folder, 'b'), '2')
    await changed(1)
    const before = read()
    writeFileSync(join(folder, 'c'), '1')
    watch.follow(before)
    await changed(2)
  }
)
