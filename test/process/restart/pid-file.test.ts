import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createPidFile } from '../../../src/process/restart/pid-file.ts'

t.test('the file gets the id as a whole, through no link of others', t => {
  const folder = t.testdir({ other: 'as it was' })
  const path = join(folder, 'pid')
  symlinkSync(join(folder, 'other'), `${path}.${process.pid}`)
  const file = createPidFile(path)
  file.prepare()
  t.notOk(existsSync(path))
  file.publish()
  t.equal(readFileSync(path, 'utf8'), `${process.pid}\n`)
  t.equal(readFileSync(join(folder, 'other'), 'utf8'), 'as it was')
  file.remove()
  t.notOk(existsSync(path))
  t.end()
})

t.test('a process that did not come to serve leaves the file of another', t => {
  const folder = t.testdir({ pid: '' })
  const path = join(folder, 'pid')
  writeFileSync(path, '1\n')
  const file = createPidFile(path)
  file.prepare()
  file.remove()
  t.equal(readFileSync(path, 'utf8'), '1\n')
  t.notOk(existsSync(`${path}.${process.pid}`))
  t.end()
})
