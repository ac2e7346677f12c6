import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeFiles } from '../../../src/cli/init/folder.ts'
import { newFolder } from '../../support/init.ts'

t.test('what was written before a failure is removed; a file that was there stays', async t => {
  const folder = newFolder(t.after)
  mkdirSync(folder)
  writeFileSync(join(folder, 'b'), 'mine')
  const files = new Map([
    ['a', 'new'],
    ['b', 'new']
  ])
  t.throws(() => writeFiles(folder, files, 'wx'), {
    message: `${folder}/b cannot be written (EEXIST).`
  })
  t.same(readdirSync(folder), ['b'])
  t.equal(readFileSync(join(folder, 'b'), 'utf8'), 'mine')
})

t.test('.gitignore gets the lines once', async t => {
  const folder = newFolder(t.after)
  const files = new Map([['.gitignore', '# Secrets.\n.env\n']])
  const write = () => {
    writeFiles(folder, files, 'wx')
    return readFileSync(join(folder, '.gitignore'), 'utf8')
  }
  t.equal(write(), '# Secrets.\n.env\n')
  t.equal(write(), '# Secrets.\n.env\n')
})

t.test('a folder that is a file fails in one line', async t => {
  const folder = newFolder(t.after)
  mkdirSync(folder)
  writeFileSync(join(folder, 'contracts'), '')
  t.throws(() => writeFiles(folder, new Map([['contracts/a.json', '{}']]), 'wx'), {
    message: `${folder}/contracts/a.json cannot be written (EEXIST).`
  })
})
