/** The ledger on disk: what is committed, batched, recovered, rotated, pruned and refused. */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { chainsIn } from '../../../src/observability/audit/chain-files.ts'
import { formatHead, headFiles, readHead } from '../../../src/observability/audit/head.ts'
import { type AuditKey, auditKeys } from '../../../src/observability/audit/line.ts'
import { ledgerFolder, ledgerIn, ledgerKey } from '../../support/ledger.ts'
import { until } from '../../support/until.ts'

function linesIn(folder: string): Array<Record<string, unknown>> {
  return [...chainsIn(folder).values()].flat().flatMap(({ path }) => {
    const texts = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return texts.map(text => JSON.parse(text) as Record<string, unknown>)
  })
}

t.test('a committed line is in the file before commit returns', async t => {
  const folder = ledgerFolder(t)
  const ledger = ledgerIn(folder)
  const seq = await ledger.commit({ kind: 'act', act: 'sessions.close', outcome: 'begun' })
  const line = linesIn(folder).find(each => each['seq'] === seq)
  t.match(line, { kind: 'act', act: 'sessions.close', outcome: 'begun' })
  await ledger.close()
})

t.test(
  'a second process writes a chain of its own, and a restart goes on with the first',
  async t => {
    const folder = ledgerFolder(t)
    const first = ledgerIn(folder)
    await first.commit({ kind: 'config.reload' })
    const second = ledgerIn(folder)
    await second.commit({ kind: 'config.reload' })
    t.equal(chainsIn(folder).size, 2)
    await first.close()
    await second.close()
    const third = ledgerIn(folder)
    await third.commit({ kind: 'config.reload' })
    await third.close()
    t.equal(chainsIn(folder).size, 2)
    t.equal(statSync([...chainsIn(folder).values()].flat()[0]?.path ?? '').mode & 0o777, 0o600)
  }
)

t.test('bytes that a crash left are kept, and a line says how many', async t => {
  const folder = ledgerFolder(t)
  const first = ledgerIn(folder)
  await first.commit({ kind: 'config.reload' })
  await first.close()
  const [file] = [...chainsIn(folder).values()].flat()
  appendFileSync(file?.path ?? '', '{"seq":9,"torn')
  const second = ledgerIn(folder)
  await second.commit({ kind: 'config.rollback' })
  await second.close()
  const text = readFileSync(file?.path ?? '', 'utf8')
  t.match(text, '{"seq":9,"torn\n{"seq":')
  t.match(text, /"kind":"recovered".*"torn":\{"bytes":14,/)
})

t.test('on a full disk commits are refused, entries wait, and it is logged once', async t => {
  const program = join(import.meta.dirname, '../../support/full-disk.ts')
  // Files may have 1,024 bytes; without the trap a signal would end the process. tap's options of
  // Node write files of their own.
  const limited = `unset NODE_OPTIONS; trap '' XFSZ; ulimit -f 2; exec "$0" "$@"`
  const words = ['-c', limited, process.execPath, program, ledgerFolder(t)]
  const { stdout, stderr } = spawnSync('sh', words, { encoding: 'utf8' })
  t.equal(stderr, '')
  const { outcomes, events, reason, waiting } = JSON.parse(stdout) as Record<string, any>
  t.equal(outcomes[0], 'written')
  t.same(outcomes.slice(-2), ['EFBIG', 'EFBIG'])
  t.equal(reason, 'EFBIG')
  t.same(events, ['audit.unwritable'])
  t.ok(waiting > 0)
})

t.test(
  'entries that waited for a folder are written, and those without a place counted',
  async t => {
    const folder = join(ledgerFolder(t), 'audit')
    writeFileSync(folder, 'a file in the place of the folder')
    let time = Date.now()
    const ledger = ledgerIn(folder, { now: () => ++time })
    await t.rejects(ledger.commit({ kind: 'act' }))
    const { failing } = ledger.status()
    await t.rejects(ledger.commit({ kind: 'act' }))
    t.equal(ledger.status().failing?.since, failing?.since)
    for (let count = 0; count < 20_005; count++) ledger.append({ kind: 'request' })
    t.ok(ledger.status().lost > 0)
    rmSync(folder)
    await until('all are written', () => ledger.status().waiting === 0)
    await until('that is told', () => ledger.status().failing === undefined)
    await ledger.close()
    const lost = linesIn(folder).filter(({ kind }) => kind === 'lost')
    t.match(lost, [{ count: ledger.status().lost }])
    t.equal(lost.length, 1)
    t.equal(linesIn(folder).filter(({ kind }) => kind === 'request').length, 19_998)
  }
)

t.test('a folder that cannot be made is a failure, not an endless attempt', async t => {
  const ledger = ledgerIn('/proc/none/audit')
  await t.rejects(ledger.commit({ kind: 'act' }), { message: 'ENOENT' })
  await ledger.close()
})

t.test('a head that could not be read at first is held against the ledger later', async t => {
  const folder = ledgerFolder(t)
  const first = ledgerIn(folder)
  for (let times = 0; times < 3; times++) await first.commit({ kind: 'config.reload' })
  await first.close()
  const [file] = [...chainsIn(folder).values()].flat()
  const path = file?.path ?? ''
  const lines = readFileSync(path, 'utf8').split('\n')
  writeFileSync(path, `${lines.slice(0, 2).join('\n')}\n`)
  const heads = headFiles(folder)
  let isAway = true
  const read = async (chain: string) => {
    if (isAway) throw new Error('the store is away')
    return await heads.read(chain)
  }
  const next = ledgerIn(folder, { heads: { ...heads, read } })
  await next.commit({ kind: 'config.reload' })
  isAway = false
  await until('the cut is found', async () => {
    await next.commit({ kind: 'config.reload' })
    return linesIn(folder).some(({ kind, state }) => kind === 'head' && state === 'cut')
  })
  await next.close()
})

t.test('a file ends when it is old, counted from its beginning over restarts', async t => {
  const folder = ledgerFolder(t)
  let time = Date.now()
  const options = { maxFileMs: 60_000, now: () => time }
  const files = () => [...chainsIn(folder).values()].flat().length
  for (const [ms, count] of [
    [0, 1],
    [40_000, 1],
    [40_000, 2]
  ] as const) {
    time += ms
    const ledger = ledgerIn(folder, options)
    for (let times = 0; times < 3; times++) await ledger.commit({ kind: 'config.reload' })
    await ledger.close()
    t.equal(files(), count)
  }
})

t.test('a file that is deleted or replaced while it is written has a successor', async t => {
  for (const act of ['deleted', 'replaced']) {
    const folder = ledgerFolder(t)
    const events: unknown[] = []
    const ignore = () => {}
    const log = { info: ignore, warn: ignore, error: (line: object) => void events.push(line) }
    const ledger = ledgerIn(folder, { log })
    await ledger.commit({ kind: 'config.reload' })
    const files = () => [...chainsIn(folder).values()].flat()
    const [first] = files()
    const path = first?.path ?? ''
    if (act === 'replaced') copyFileSync(path, `${path}.copy`)
    if (act === 'replaced') renameSync(`${path}.copy`, path)
    else rmSync(path)
    await until(`another file is written: ${act}`, async () => {
      await ledger.commit({ kind: 'config.reload' })
      return files().at(-1)?.number === 2
    })
    await ledger.close()
    t.match(events, [{ event: 'audit.cut' }])
  }
})

t.test('files are in the order of their numbers, however many digits they have', t => {
  const numbers = ['000002', '999999', '1000000']
  const names = numbers.map(number => [`audit-0123456789ab-${number}.jsonl`, ''] as const)
  const folder = t.testdir(Object.fromEntries(names))
  t.same(
    chainsIn(folder)
      .get('0123456789ab')
      ?.map(({ number }) => number),
    [2, 999_999, 1_000_000]
  )
  t.end()
})

t.test('chains that nobody writes any more are deleted when their last line is old', async t => {
  const folder = ledgerFolder(t)
  const replicas = [ledgerIn(folder), ledgerIn(folder), ledgerIn(folder)]
  for (const ledger of replicas) await ledger.commit({ kind: 'config.reload' })
  const [, still, ...left] = replicas
  const before = [...chainsIn(folder).keys()]
  for (const ledger of [replicas[0], ...left]) await ledger?.close()
  const later = { keepMs: 60_000, now: () => Date.now() + 61_000 }
  const next = ledgerIn(folder, later)
  await next.commit({ kind: 'config.reload' })
  await next.close()

  const after = [...chainsIn(folder).keys()]
  t.equal(before.length, 3)
  t.equal(after.length, 2, 'its own, and that of the process that still writes')
  const gone = before.find(chain => !after.includes(chain)) ?? ''
  t.equal(await headFiles(folder).read(gone), undefined, 'its head would be a fault of verify')
  const pruned = linesIn(folder).filter(({ abandoned }) => abandoned !== undefined)
  t.match(pruned, [{ kind: 'pruned', abandoned: { chain: gone, through: 3, throughMac: String } }])
  t.equal(pruned.length, 1)

  await still?.close()
  const young = ledgerIn(folder, { keepMs: 60_000 })
  await young.commit({ kind: 'config.reload' })
  await young.close()
  t.equal(chainsIn(folder).size, 2, 'a chain that ended just now stays')
})

t.test('a head that cannot be removed keeps its chain, and the ledger goes on', async t => {
  const folder = ledgerFolder(t)
  const replicas = [ledgerIn(folder), ledgerIn(folder)]
  for (const ledger of replicas) await ledger.commit({ kind: 'config.reload' })
  for (const ledger of replicas) await ledger.close()
  const remove = () => Promise.reject(new Error('the store is away'))
  const next = ledgerIn(folder, {
    keepMs: 60_000,
    now: () => Date.now() + 61_000,
    heads: { ...headFiles(folder), remove }
  })
  await next.commit({ kind: 'config.reload' })
  await next.close()
  t.equal(chainsIn(folder).size, 2)
})

t.test('an abandoned chain whose end was cut stays, with the head that proves it', async t => {
  const folder = ledgerFolder(t)
  const replicas = [ledgerIn(folder), ledgerIn(folder)]
  for (const ledger of replicas) {
    for (let count = 0; count < 5; count++) await ledger.commit({ kind: 'config.reload' })
  }
  for (const ledger of replicas) await ledger.close()
  const [, cut = ''] = chainsIn(folder).keys()
  const [file] = chainsIn(folder).get(cut) ?? []
  const lines = readFileSync(file?.path ?? '', 'utf8').split('\n')
  writeFileSync(file?.path ?? '', `${lines.slice(0, 2).join('\n')}\n`)
  const next = ledgerIn(folder, { keepMs: 60_000, now: () => Date.now() + 61_000 })
  await next.commit({ kind: 'config.reload' })
  await next.close()
  t.ok(chainsIn(folder).has(cut))
  t.ok(await headFiles(folder).read(cut))
  t.notOk(linesIn(folder).some(({ abandoned }) => abandoned !== undefined))
})

t.test('an abandoned chain whose head does not fit its end stays', async t => {
  const [key] = auditKeys([ledgerKey]) as [AuditKey]
  const replaced = (chain: string, seq: number) =>
    formatHead(chain, { seq, mac: 'x'.repeat(43) }, key)
  for (const headOf of [() => 'nobody wrote this', replaced]) {
    const folder = ledgerFolder(t)
    const heads = headFiles(folder)
    const replicas = [ledgerIn(folder), ledgerIn(folder)]
    for (const ledger of replicas) await ledger.commit({ kind: 'config.reload' })
    for (const ledger of replicas) await ledger.close()
    const [, other = ''] = chainsIn(folder).keys()
    const head = readHead(other, (await heads.read(other)) ?? '', [key])
    await heads.write(other, headOf(other, head?.seq ?? 0))
    const next = ledgerIn(folder, { keepMs: 60_000, now: () => Date.now() + 61_000 })
    await next.commit({ kind: 'config.reload' })
    await next.close()
    t.ok(chainsIn(folder).has(other))
  }
})

t.test('a chain that was looked at for its age can be taken by another process', async t => {
  const folder = ledgerFolder(t)
  const replicas = [ledgerIn(folder), ledgerIn(folder)]
  for (const ledger of replicas) await ledger.commit({ kind: 'config.reload' })
  for (const ledger of replicas) await ledger.close()
  const next = ledgerIn(folder, { keepMs: 60_000 })
  await next.commit({ kind: 'config.reload' })
  const second = ledgerIn(folder)
  await second.commit({ kind: 'config.reload' })
  t.equal(chainsIn(folder).size, 2)
  for (const ledger of [next, second]) await ledger.close()
})

t.test('an entry has the time at which it happened, also where it was on its way', async t => {
  const folder = ledgerFolder(t)
  const ledger = ledgerIn(folder)
  await ledger.commit({ kind: 'act', at: 1_700_000_000_000 })
  await ledger.close()
  t.match(
    linesIn(folder).find(({ kind }) => kind === 'act'),
    { at: new Date(1_700_000_000_000).toISOString() }
  )
})
