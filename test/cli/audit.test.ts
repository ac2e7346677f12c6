/** `audit verify`: whatever is changed in a ledger is found, and nothing else is. */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { run } from '../support/command.ts'
import { ledgerIn, ledgerKey } from '../support/ledger.ts'
import { createRandom } from '../support/random.ts'
import { seed } from '../support/seed.ts'
import { temporaryFolder } from '../support/temporary.ts'

type Tree = Record<string, any>

const base = temporaryFolder()
const keyFile = join(base, 'key')
writeFileSync(keyFile, `${ledgerKey}\n`)

/** Three processes, one after the other. */
const folder = join(base, 'audit')
for (let process = 0; process < 3; process++) {
  const ledger = ledgerIn(folder)
  for (let number = 0; number < 100; number++) {
    ledger.append({ kind: 'request', user: 'a"lice\u202e', path: `/x\u2028/${number}` })
  }
  await ledger.commit({ kind: 'act', act: 'sessions.close', outcome: 'done' })
  await ledger.close()
}
const files = readdirSync(folder).toSorted()

const verify = async (where: string, key = keyFile) =>
  await run(['audit', 'verify', '--folder', where, '--key-file', key])

/** Of a copy in which `change` has changed a file. */
async function verifyChanged(file: string, change: (path: string) => void) {
  const copy = join(base, 'copy')
  rmSync(copy, { recursive: true, force: true })
  cpSync(folder, copy, { recursive: true })
  change(join(copy, file))
  return await verify(copy)
}

t.test('as it was written', async t => {
  const out =
    /^as it was written \(309 lines in 3 chains, 20\S+ to 20\S+\)\n {2}ends: without Redis/
  t.match(await verify(folder), { code: 0, out })
  t.notMatch(readFileSync(join(folder, files[0] ?? ''), 'utf8'), /[\u2028\u202e]/)
})

const changedLines = (change: (lines: string[]) => void) => (path: string) => {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  change(lines)
  writeFileSync(path, `${lines.join('\n')}\n`)
}

const tamperings: Readonly<Record<string, (path: string) => void>> = {
  'its end cut': changedLines(lines => void lines.splice(-2)),
  'a line taken out': changedLines(lines => void lines.splice(2, 1)),
  'a line twice': changedLines(lines => void lines.splice(3, 0, lines[3] ?? '')),
  'a line added': changedLines(lines => void lines.splice(3, 0, '{"seq":4}')),
  'a line of another chain': changedLines(lines => {
    const other = files.find(file => !lines[1]?.includes(file.slice(6, -6))) ?? ''
    lines[3] = readFileSync(join(folder, other), 'utf8').split('\n')[3] ?? ''
  }),
  'the file deleted': path => rmSync(path)
}

t.test('each change is found, but for the newest end', async t => {
  const random = createRandom(seed)
  const flipBit = (path: string) => {
    const bytes = readFileSync(path)
    const at = random.integer(0, bytes.length - 1)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(path, bytes)
  }
  for (const [index, file] of files.entries()) {
    for (let times = 0; times < 25; times++) {
      const flipped = await verifyChanged(file, flipBit)
      t.match(flipped, { code: 1, out: `fault: ${file}:` })
    }
    for (const [name, change] of Object.entries(tamperings)) {
      // The newest end is named by Redis alone.
      const isLast = index === files.length - 1 && /end cut|deleted/.test(name)
      const { code, out } = await verifyChanged(file, change)
      t.equal(code, isLast ? 0 : 1, `${name}, file ${index}: ${out}`)
    }
  }
})

t.test('a crash in the middle of a line is a note, a changed last line a fault', async t => {
  const file = files.at(-1) ?? ''
  const torn = await verifyChanged(file, path => {
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.slice(0, text.lastIndexOf('"kind":"closed"')))
  })
  const note = /note: .* has no end: it is still written, or its process crashed/
  t.match(torn, { code: 0, out: note })
  const changed = await verifyChanged(file, path => appendFileSync(path, 'garbage\n'))
  t.match(changed, { code: 1, out: `fault: ${file}:104: this line was changed` })
})

t.test('another key signed none of it; one of several keys is enough', async t => {
  const keys = join(base, 'keys')
  writeFileSync(keys, 'another key of at least thirty-two bytes\n')
  t.match(await verify(folder, keys), { code: 1, out: /:1: .*or another key signed it/ })
  writeFileSync(keys, `another key of at least thirty-two bytes\n${ledgerKey}\n`)
  t.match(await verify(folder, keys), { code: 0 })
})

t.test('files that are too old are deleted, and the next file says so', async t => {
  const old = join(base, 'old')
  cpSync(folder, old, { recursive: true })
  const past = new Date(Date.now() - 3 * 86_400_000)
  for (const file of files.slice(0, 2)) utimesSync(join(old, file), past, past)
  const ledger = ledgerIn(old, { keepMs: 2 * 86_400_000, maxFileBytes: 4096 })
  for (let number = 0; number < 100; number++) ledger.append({ kind: 'sign-in', user: 'bob' })
  await ledger.close()
  const left = readdirSync(old)
  t.same([left.includes(files[0] ?? ''), left.includes(files[2] ?? '')], [false, true])
  t.ok(left.length > 1)
  t.match(await verify(old), { code: 0 })
  rmSync(join(old, files[2] ?? ''))
  t.match(await verify(old), { code: 1, out: `fault: ${files[2]}: it was deleted, as audit-` })
})

t.test('lines among those of a log, of several processes', async t => {
  const lines: string[] = []
  const write = (text: string) => void lines.push(text, '{"level":"info","msg":"request"}\n')
  const ledgers = [1, 2].map(() => ledgerIn('', { to: write }))
  for (let number = 0; number < 5; number++) {
    for (const ledger of ledgers) await ledger.commit({ kind: 'sign-in', user: `u${number}` })
  }
  for (const ledger of ledgers) await ledger.close()
  const log = join(base, 'collected.log')
  const words = ['audit', 'verify', '--collected', log, '--key-file', keyFile]
  writeFileSync(log, lines.join(''))
  t.match(await run(words), { code: 0, out: /^as it was written \(14 lines in 2 chains/ })
  writeFileSync(log, lines.filter(line => !line.includes('"seq":4,')).join(''))
  t.match(await run(words), { code: 1, out: /fault: collected\.log:\d+: / })
})

t.test('a disk that is full: acts learn of it, and the next file goes on', async t => {
  const full = join(base, 'full')
  const program = fileURLToPath(import.meta.resolve('../support/full-disk.ts'))
  // Without the trap a signal would end the process; tap's options of Node write files too.
  const limited = `unset NODE_OPTIONS; trap '' XFSZ; ulimit -f 2; exec "$0" "$@"`
  const words = ['-c', limited, process.execPath, program, full]
  const { stdout, stderr } = spawnSync('sh', words, { encoding: 'utf8' })
  t.equal(stderr, '')
  const { outcomes, events, reason } = JSON.parse(stdout) as Tree
  t.same([outcomes[0], ...outcomes.slice(-2)], ['written', 'EFBIG', 'EFBIG'])
  t.same([events, reason], [['audit.unwritable'], 'EFBIG'])
  const ledger = ledgerIn(full)
  await ledger.commit({ kind: 'act' })
  await ledger.close()
  t.match(await verify(full), { code: 0, out: 'note: ' })
})

t.test('what makes no sense, and what is not there', async t => {
  t.match(await verify(t.testdir()), { code: 3, out: /no line of a ledger in 0 files/ })
  t.match(await verify(join(base, 'nowhere')), { code: 1, err: /ENOENT.*has not begun/ })
  t.match(await run(['audit', 'verify', '--folder', folder]), { code: 2, err: /--key-file/ })
})
