/** What `audit verify` finds: each kind of change, and that nothing else is reported. */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { chainFilePath, chainsIn } from '../../../src/observability/audit/chain-files.ts'
import type { Finding, StoredHead } from '../../../src/observability/audit/chain-report.ts'
import { formatHead, headFiles, readHead } from '../../../src/observability/audit/head.ts'
import type { LedgerOptions } from '../../../src/observability/audit/ledger.ts'
import { type AuditKey, auditKeys, formatLine } from '../../../src/observability/audit/line.ts'
import { parseKeepingDigits } from '../../../src/json/digits.ts'
import { verifyFolder } from '../../../src/observability/audit/verify.ts'
import { ledgerFolder, ledgerIn, ledgerKey } from '../../support/ledger.ts'
import { createRandom } from '../../support/random.ts'
import { seed } from '../../support/seed.ts'

const [key, otherKey] = auditKeys([ledgerKey, 'another key of at least thirty-two bytes']) as [
  AuditKey,
  AuditKey
]

async function write(
  folder: string,
  count: number,
  options: Partial<LedgerOptions> = {}
): Promise<void> {
  const ledger = ledgerIn(folder, options)
  for (let number = 0; number < count; number++) {
    await ledger.commit({ kind: 'request', user: `user ${number}`, route: 'orders' })
  }
  await ledger.close()
}

async function findings(folder: string, keys: readonly AuditKey[] = [key]): Promise<Finding[]> {
  const heads = headFiles(folder)
  const headOf = async (chain: string): Promise<StoredHead> => {
    const position = readHead(chain, (await heads.read(chain)) ?? '', [key, otherKey])
    return position === undefined
      ? { from: 'none', reason: 'no head' }
      : { from: 'beside', position }
  }
  const reports = await verifyFolder({ folder, keys, headOf, parse: parseKeepingDigits })
  return reports.flatMap(report => report.findings)
}

const faultsOf = (all: readonly Finding[]) =>
  all.filter(({ severity }) => severity === 'fault').map(({ line, message }) => ({ line, message }))

const pathsIn = (folder: string) => [...chainsIn(folder).values()].flat().map(({ path }) => path)

/** Rewrites the lines of the only file. */
function edit(folder: string, change: (lines: string[]) => string[]): void {
  const [path = ''] = pathsIn(folder)
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  writeFileSync(
    path,
    change(lines)
      .map(line => `${line}\n`)
      .join('')
  )
}

t.test('a ledger that nobody changed has no finding', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 20)
  await write(folder, 5)
  t.same(await findings(folder), [])
})

t.test('a changed, a cut and two swapped lines are named by their place', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 20)
  const [path = ''] = pathsIn(folder)
  const original = readFileSync(path)

  edit(folder, lines =>
    lines.map((line, index) => (index === 4 ? line.replace('user 3', 'bob') : line))
  )
  t.match(faultsOf(await findings(folder)), [{ line: 5, message: 'line 5 was changed' }])
  t.equal(faultsOf(await findings(folder)).length, 1)

  writeFileSync(path, original)
  edit(folder, lines => lines.toSpliced(6, 1))
  t.match(faultsOf(await findings(folder)), [
    { line: 7, message: 'line 7 is missing before line 8' }
  ])

  writeFileSync(path, original)
  edit(folder, lines => lines.toSpliced(8, 2, lines[9] ?? '', lines[8] ?? ''))
  const swapped = faultsOf(await findings(folder))
  t.match(swapped[0], { line: 9, message: 'line 9 is missing before line 10' })
  t.match(swapped[1], { line: 10, message: 'line 9 stands after line 10' })

  writeFileSync(path, original)
  edit(folder, lines => lines.toSpliced(3, 0, lines[10] ?? ''))
  t.ok(faultsOf(await findings(folder)).length > 0, 'a line that stands twice')

  writeFileSync(path, original)
  edit(folder, lines => lines.toSpliced(5, 0, lines[4] ?? ''))
  t.match(faultsOf(await findings(folder)), [
    { line: 6, message: 'line 5 stands after line 5: moved, or there twice' }
  ])

  writeFileSync(path, original)
  edit(folder, lines => lines.toSpliced(8, 0, 'no line', lines[7] ?? ''))
  t.match(faultsOf(await findings(folder)), [
    { line: 9, message: 'is not a line of the ledger' },
    { line: 10, message: 'line 8 stands after line 8: moved, or there twice' }
  ])
})

t.test('without its first line, or with an unfinished last one, a ledger has a fault', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 3)
  const [path = ''] = pathsIn(folder)
  const original = readFileSync(path, 'utf8')
  edit(folder, lines => lines.slice(1))
  t.match(faultsOf(await findings(folder)), [
    { line: 1, message: 'lines 1 to 1 are missing, and no line says that they were pruned' }
  ])
  writeFileSync(path, `${original}{"seq":`)
  const lines = original.split('\n').length
  t.match(faultsOf(await findings(folder)), [
    { line: lines, message: /^the last line is unfinished/ }
  ])
})

t.test('a pipe, a device or a folder in the place of a file ends no verification', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 3)
  const place = (chain: string) => join(folder, `audit-${chain.repeat(12)}-000001.jsonl`)
  execFileSync('mkfifo', [place('a')])
  symlinkSync('/dev/zero', place('b'))
  mkdirSync(place('c'))
  t.same(faultsOf(await findings(folder)), [])
})

t.test('lines of megabytes and zero bytes are faults at their place', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 3)
  const [path = ''] = pathsIn(folder)
  const { length } = readFileSync(path, 'utf8').split('\n')
  const huge = '{"seq":99999999999999999999,"prev":"'
  appendFileSync(path, Buffer.concat([Buffer.from(huge), Buffer.alloc(8 * 1024 * 1024)]))
  const faults = faultsOf(await findings(folder))
  t.match(faults, [{ line: length, message: /longer than any line of the ledger/ }])
})

t.test('a cut tail shows against the head, and only against it', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 20)
  edit(folder, lines => lines.slice(0, 15))
  t.match(faultsOf(await findings(folder)), [
    { message: 'the end was cut: the ledger ends at line 15, the stored head names line 22' }
  ])
  const [chain = ''] = chainsIn(folder).keys()
  unlinkSync(join(folder, `audit-${chain}.head`))
  t.same(faultsOf(await findings(folder)), [])
})

t.test('a tail that was cut before a restart stays a fault', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 20)
  edit(folder, lines => lines.slice(0, 15))
  await write(folder, 30)
  t.match(faultsOf(await findings(folder)), [{ message: /ended at line 15.*named line 22/ }])
})

t.test('lines that were replaced before a restart stay a fault', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 20)
  edit(folder, lines => [...lines.slice(0, 20), (lines[20] ?? '').replace('user', 'xxxx')])
  await write(folder, 3)
  t.ok(faultsOf(await findings(folder)).length > 0)
})

t.test('lines that were written anew with the key, past the head, are a fault', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 2)
  const [path = ''] = pathsIn(folder)
  const before = readFileSync(path)
  await write(folder, 3)
  const heads = headFiles(folder)
  const [chain = ''] = chainsIn(folder).keys()
  const head = (await heads.read(chain)) ?? ''
  writeFileSync(path, before)
  await heads.remove(chain)
  await write(folder, 8)
  await heads.write(chain, head.trim())
  await write(folder, 1)
  t.match(faultsOf(await findings(folder)), [{ message: /ended at line 15.*named line 9/ }])
})

t.test('rotation goes on with the chain, and a deleted file is missing', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 60, { maxFileBytes: 4096 })
  const paths = pathsIn(folder)
  t.ok(paths.length >= 4, `${paths.length} files`)
  t.same(await findings(folder), [])
  unlinkSync(paths[1] ?? '')
  t.match(faultsOf(await findings(folder)), [
    { line: undefined, message: 'file 2 is missing before this file' },
    { line: 1, message: /are missing before line/ }
  ])
})

t.test('a crash between two files leaves a chain that goes on', async t => {
  for (const crash of ['before the next file', 'before its first line']) {
    const folder = ledgerFolder(t)
    await write(folder, 60, { maxFileBytes: 4096 })
    const paths = pathsIn(folder)
    const [, last = ''] = /(\d+)\.jsonl$/.exec(paths.at(-1) ?? '') ?? []
    if (crash === 'before the next file') {
      unlinkSync(paths.at(-1) ?? '')
    } else {
      const next = String(Number(last) + 1).padStart(6, '0')
      writeFileSync((paths.at(-1) ?? '').replace(`${last}.jsonl`, `${next}.jsonl`), '')
    }
    // It would name the lines of the file that is taken away here.
    for (const chain of chainsIn(folder).keys()) await headFiles(folder).remove(chain)
    await write(folder, 1)
    t.equal(pathsIn(folder).length, paths.length + (crash === 'before the next file' ? 0 : 1))
    t.same(faultsOf(await findings(folder)), [], crash)
  }
})

t.test('a crash in or behind the line that closes a file leaves a chain that goes on', async t => {
  const crashes = {
    'the line break is missing': (text: string) => text.slice(0, -1),
    'torn bytes are behind it': (text: string) => `${text}{"seq":9,"torn`,
    'a torn line is behind it': (text: string) => `${text}{"seq":9,"torn\n`
  }
  for (const [crash, change] of Object.entries(crashes)) {
    const folder = ledgerFolder(t)
    await write(folder, 60, { maxFileBytes: 4096 })
    const paths = pathsIn(folder)
    unlinkSync(paths.at(-1) ?? '')
    const last = paths.at(-2) ?? ''
    const text = readFileSync(last, 'utf8')
    t.match(text, /"kind":"closed"[^\n]*\n$/)
    writeFileSync(last, change(text))
    // It would name the lines of the file that is taken away here.
    for (const chain of chainsIn(folder).keys()) await headFiles(folder).remove(chain)
    await write(folder, 3, { maxFileBytes: 4096 })
    t.same(faultsOf(await findings(folder)), [], crash)
    t.equal(pathsIn(folder).length, paths.length, 'the full file is followed by the next')
  }
})

t.test('a crash before files are deleted leaves them in their chain', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 60, { maxFileBytes: 4096 })
  const [first = '', ...others] = pathsIn(folder)
  renameSync(first, `${first}.pruned`)
  t.same(await findings(folder), [], 'one was set aside')
  for (const path of others) renameSync(path, `${path}.pruned`)
  t.same(await findings(folder), [], 'the whole chain was set aside')
  await write(folder, 1)
  t.same(await findings(folder), [], 'another process goes on with it')
  t.equal(pathsIn(folder).at(-1), others.at(-1))

  const next = chainFilePath(folder, chainsIn(folder).keys().next().value ?? '', others.length + 2)
  renameSync(others.at(-1) ?? '', `${others.at(-1)}.pruned`)
  writeFileSync(next, '')
  await write(folder, 1)
  t.same(await findings(folder), [], 'the next file had no line yet')
  await write(folder, 1, { keepMs: 1, now: () => Date.now() + 60_000 })
  t.same(pathsIn(folder), [next])
  t.same(faultsOf(await findings(folder)), [])
})

t.test('a process that did not stop in order is noted', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 1)
  t.same(await findings(folder), [])
  edit(folder, lines => lines.slice(0, -1))
  for (const chain of chainsIn(folder).keys()) await headFiles(folder).remove(chain)
  await write(folder, 1)
  t.match(await findings(folder), [
    { severity: 'note', message: /did not stop in order/ },
    { severity: 'warning', message: /the stored head was missing/ }
  ])
})

t.test('pruned files are told from missing ones', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 60, { maxFileBytes: 4096 })
  const before = pathsIn(folder).length
  await write(folder, 1, { keepMs: 1, maxFileBytes: 4096, now: () => Date.now() + 60_000 })
  const paths = pathsIn(folder)
  t.ok(paths.length < before, `${paths.length} of ${before} files`)
  const pruned = await findings(folder)
  t.same(faultsOf(pruned), [])
  t.match(pruned, [{ severity: 'note', message: /were pruned, as a line of the ledger says/ }])
  await write(folder, 60, { maxFileBytes: 4096 })
  unlinkSync(pathsIn(folder)[0] ?? '')
  t.match(faultsOf(await findings(folder)), [
    { message: /are missing, and no line says that they were pruned/ }
  ])
})

t.test('a pruned line counts for the very lines that it names', async t => {
  const former = { seq: 10, mac: 'f'.repeat(43) }
  const at = Date.now()
  const faultsWith = async (through: number, throughMac: string) => {
    const folder = ledgerFolder(t)
    mkdirSync(folder, { recursive: true })
    const opened = formatLine(former, key, { at, kind: 'opened', members: {} })
    const position = { seq: former.seq + 1, mac: opened.mac }
    const members = { file: 1, through, throughMac }
    const pruned = formatLine(position, key, { at, kind: 'pruned', members })
    const path = chainFilePath(folder, '0123456789ab', 2)
    writeFileSync(path, `${opened.text}\n${pruned.text}\n`)
    return faultsOf(await findings(folder)).map(({ message }) => message)
  }
  const missing = ['lines 1 to 10 are missing, and no line says that they were pruned']
  t.same(await faultsWith(10, former.mac), [])
  t.same(await faultsWith(10, 'g'.repeat(43)), missing, 'other lines were pruned')
  t.same(await faultsWith(9, former.mac), missing, 'one more is missing')
  t.same(await faultsWith(11, 'g'.repeat(43)), [], 'fewer are: its process ended meanwhile')
})

t.test('a rotated key verifies with both keys; without the former one it is named', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 5)
  await write(folder, 5, { keys: [otherKey, key] })
  t.same(await findings(folder, [otherKey, key]), [])
  const faults = faultsOf(await findings(folder, [otherKey]))
  t.match(faults[0], {
    line: 1,
    message: `signed with key ${key.id}, which audit.key does not hold`
  })
})

t.test('any byte of any file that is changed, added or removed is found', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 30, { maxFileBytes: 4096 })
  const random = createRandom(seed)
  for (let round = 0; round < 400; round++) {
    const paths = pathsIn(folder)
    const path = random.pick(paths)
    const original = readFileSync(path)
    const at = random.integer(0, original.length - 1)
    const bytes = [...original]
    const kind = random.integer(0, 2)
    const other = (bytes[at] ?? 0) ^ random.integer(1, 255)
    if (kind === 0) bytes[at] = other
    else if (kind === 1) bytes.splice(at, 1)
    else bytes.splice(at, 0, random.integer(0, 255))
    const changed = Buffer.from(bytes)
    if (changed.equals(original)) continue
    writeFileSync(path, changed)
    const faults = faultsOf(await findings(folder))
    if (faults.length === 0) t.fail(`not found: ${path} at ${at}, kind ${kind}`)
    writeFileSync(path, original)
  }
  t.same(await findings(folder), [])
})

t.test('a head counts for the chain, the line and the key alone that it was written with', t => {
  const [chain, position] = ['0123456789ab', { seq: 5, mac: 'm'.repeat(43) }]
  const head = formatHead(chain, position, key)
  t.same(readHead(chain, head, [otherKey, key]), position)
  t.equal(readHead('ba9876543210', head, [key]), undefined)
  t.equal(readHead(chain, head.replace('5 ', '4 '), [key]), undefined)
  t.equal(readHead(chain, head.replace('mmm', 'nnn'), [key]), undefined)
  t.equal(readHead(chain, head, [otherKey]), undefined)
  t.end()
})

t.test('files of another chain, lost entries and a line that the head names are told', async t => {
  const folder = ledgerFolder(t)
  const ledger = ledgerIn(folder)
  ledger.lose(3, {})
  await ledger.commit({ kind: 'act' })
  await ledger.close()
  t.match(await findings(folder), [{ severity: 'warning', message: /^3 entries could not/ }])
  const heads = headFiles(folder)
  const [chain = ''] = chainsIn(folder).keys()
  const head = (await heads.read(chain)) ?? ''
  const { seq } = readHead(chain, head, [key]) ?? { seq: 0 }
  await write(folder, 5)
  await heads.write(chain, head.trim())
  edit(folder, lines => lines.filter(line => !line.includes(`"seq":${seq},`)))
  t.match(faultsOf(await findings(folder)), [
    { message: `line ${seq} is missing before line ${seq + 1}` },
    { message: `line ${seq}, which the stored head names, is missing` }
  ])
  const [path = ''] = pathsIn(folder)
  copyFileSync(path, path.replace(chain, 'ba9876543210'))
  const messages = faultsOf(await findings(folder)).map(({ message }) => message)
  t.ok(messages.some(message => message.includes(`is of the chain ${chain}: files were renamed`)))
})

t.test('a chain goes on behind its last genuine line, not behind what others wrote', async t => {
  const folder = ledgerFolder(t)
  await write(folder, 2)
  edit(folder, lines => [...lines, (lines.at(-1) ?? '').replace(/"seq":\d+/, '"seq":99')])
  await write(folder, 1)
  const lines = readFileSync(pathsIn(folder)[0] ?? '', 'utf8').split('\n')
  t.match(JSON.parse(lines[5] ?? ''), { seq: 5, kind: 'recovered', torn: { bytes: Number } })
})
