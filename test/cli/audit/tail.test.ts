/** `audit tail`: the lines that are added while it runs, over the ends of files. */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { chainsIn } from '../../../src/observability/audit/chain-files.ts'
import { running } from '../../support/command.ts'
import { ledgerFolder, ledgerIn, ledgerKey } from '../../support/ledger.ts'

const words = (folder: string, keyFile: string) => [
  'src/launch.js',
  ...['audit', 'tail', '--follow', '--json', '--folder', folder, '--key-file', keyFile]
]

const usersOf = (written: string) =>
  [...written.matchAll(/"user":"(u\d+)"/g)].map(([, user]) => user)

t.test('tail -f prints each line once, also those of files that begin meanwhile', async t => {
  const folder = ledgerFolder(t)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, ledgerKey)
  const ledger = ledgerIn(folder, { maxFileBytes: 2048 })
  await ledger.commit({ kind: 'request', user: 'u0' })
  const tail = running(t.after, process.execPath, words(folder, keyFile))
  await tail.says('"user":"u0"')

  const expected = Array.from({ length: 60 }, (_, number) => `u${number}`)
  for (const user of expected.slice(1)) await ledger.commit({ kind: 'request', user })
  const [files = []] = chainsIn(folder).values()
  const second = ledgerIn(folder)
  await second.commit({ kind: 'request', user: 'u60' })
  const written = await tail.says('"user":"u60"')
  t.ok(files.length >= 4, `${files.length} files`)
  t.same(
    usersOf(await tail.says('"user":"u59"')).filter(user => user !== 'u60'),
    expected
  )
  t.match(written, '"signed":true')

  const last = files.at(-1)?.path ?? ''
  appendFileSync(last, `{"seq":999,"user":"u998"}\n${'x'.repeat(3 * 1024 * 1024)}\n`)
  const lines = files.flatMap(({ path }) => readFileSync(path, 'utf8').split('\n'))
  const text = lines.find(line => line.includes('"user":"u59"')) ?? ''
  appendFileSync(last, `${text.replace('"u59"', '"u997"')}\n`)
  t.match(await tail.says('"u997"'), /^\{[^\n]*"signed":false[^\n]*"user":"u997"/m)
  const first = files[0]?.path ?? ''
  renameSync(first, `${first}.pruned`)
  await ledger.commit({ kind: 'request', user: 'u61' })
  const after = usersOf(await tail.says('"user":"u61"'))
  t.notOk(after.includes('u998'), 'a line without a signature is not printed')
  t.equal(after.filter(user => user === 'u0').length, 1, 'nor a file that is about to be deleted')
  await ledger.close()
  await second.close()
})
