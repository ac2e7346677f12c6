/** The ledger on disk: what is committed, batched, recovered, rotated, pruned and refused. */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Chain } from '../../../src/observability/audit/chain.ts'
import { chainFilePath, chainsIn } from '../../../src/observability/audit/chain-files.ts'
import { formatHead, headFiles, readHead } from '../../../src/observability/audit/head.ts'
import { type AuditKey, auditKeys } from '../../../src/observability/audit/line.ts'
import { ledgerFolder, ledgerIn, ledgerKey } from '../../support/ledger.ts'
import { until } from '../../support/until.ts'

const nobody = 65_534
const keys = () => auditKeys([ledgerKey]) as [AuditKey]

function linesIn(folder: string): Array<Record<string, unknown>> {
  return [...chainsIn(folder).values()].flat().flatMap(({ path }) => {
    const texts = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return texts.map(text => JSON.parse(text) as Record<string, unknown>)
  })
}

const filesIn = (folder: string) => [...chainsIn(folder).values()].flat().map(({ path }) => path)
const prunedIn = (folder: string) => linesIn(folder).filter(({ kind }) => kind === 'pruned')
const ignore = () => {}
const fail = (line: object) => t.fail(JSON.stringify(line))

/** All is another user's but these files, which that user can only read. */
function protect(test: Test, folder: string, files: readonly string[]): void {
  for (const name of readdirSync(folder)) chownSync(join(folder, name), nobody, nobody)
  for (const file of files) {
    chownSync(file, 0, 0)
    chmodSync(file, 0o644)
  }
  chmodSync(folder, 0o1777)
  process.seteuid?.(nobody)
  test.teardown(() => process.seteuid?.(0))
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
  await second.commit({ kind: 'maintenance' })
  await second.close()
  const text = readFileSync(file?.path ?? '', 'utf8')
  t.match(text, '{"seq":9,"torn\n{"seq":')
  t.match(text, /"kind":"recovered".*"torn":\{"bytes":14,/)
})

t.test('a file that holds nothing but what a crash left is kept too, without a fault', async t => {
  const folder = ledgerFolder(t)
  const path = chainFilePath(folder, '0123456789ab', 1)
  writeFileSync(path, '{"seq":1,"torn')
  const ledger = ledgerIn(folder)
  await ledger.commit({ kind: 'config.reload' })
  await ledger.close()
  t.match(readFileSync(path, 'utf8'), /^\{"seq":1,"torn\n\{"seq":1,.*"torn":\{"bytes":14,/)
})

t.test('that old files go is on disk before they are gone', async t => {
  const folder = ledgerFolder(t)
  const options = { folder, keys: keys(), maxFileMs: 86_400_000, keepMs: 60_000 }
  const old = ledgerIn(folder, { maxFileBytes: 1 })
  await old.commit({ kind: 'config.reload' })
  await old.close()
  const before = [...chainsIn(folder).values()].flat().length
  const now = () => Date.now() + 61_000
  const chain = await Chain.open({ ...options, maxFileBytes: 1024 ** 2, now })
  t.teardown(() => chain.close())
  await chain.prune()
  t.ok([...chainsIn(folder).values()].flat().length < before)
  t.match(linesIn(folder).at(-1), { kind: 'pruned', through: Number, throughMac: String })
})

const skip = process.getuid?.() === 0 ? false : 'takes the files of two users'
t.test('a file of another user keeps nothing from being written', { skip }, async t => {
  const folder = ledgerFolder(t)
  const old = ledgerIn(folder, { maxFileBytes: 1 })
  await old.commit({ kind: 'config.reload' })
  await old.close()
  const before = filesIn(folder)
  const events: unknown[] = []
  const log = { info: ignore, warn: (line: object) => void events.push(line), error: fail }
  const options = { keepMs: 60_000, now: () => Date.now() + 61_000, log }
  protect(t, folder, before.slice(0, 1))
  for (let round = 0; round < 3; round++) {
    const ledger = ledgerIn(folder, options)
    await ledger.commit({ kind: 'maintenance' })
    t.equal(ledger.status().failing, undefined)
    await ledger.close()
  }
  t.same(filesIn(folder), before)
  t.equal(linesIn(folder).filter(({ kind }) => kind === 'maintenance').length, 3)
  t.same(prunedIn(folder), [], 'no line claims what did not happen')
  const [unpruned] = events
  t.match(unpruned, { event: 'audit.unpruned', err: { code: 'EPERM' } })
  t.equal(events.length, 3, 'each process says it once')
})

t.test('an old file whose end no key has signed is told, since it and later ones stay', async t => {
  const folder = ledgerFolder(t)
  const first = ledgerIn(folder, { maxFileBytes: 1 })
  for (let round = 0; round < 3; round++) await first.commit({ kind: 'config.reload' })
  await first.close()
  const before = filesIn(folder)
  const events: unknown[] = []
  const log = { info: ignore, warn: (line: object) => void events.push(line), error: fail }
  const [otherKey] = auditKeys(['another key of at least thirty-two bytes']) as [AuditKey]
  const next = ledgerIn(folder, {
    keys: [otherKey],
    keepMs: 60_000,
    now: () => Date.now() + 61_000,
    log
  })
  await next.commit({ kind: 'config.reload' })
  await next.close()
  t.same(filesIn(folder).slice(0, before.length), before)
  t.match(events.at(-1), { event: 'audit.unpruned', err: { message: `${before[0]} does not end` } })
})

t.test('an old file that cannot be deleted stops no rotation, and goes when it can', async t => {
  const folder = ledgerFolder(t)
  const events: unknown[] = []
  const log = { info: ignore, warn: (line: object) => void events.push(line), error: fail }
  let time = Date.now()
  const ledger = ledgerIn(folder, { maxFileBytes: 1, keepMs: 60_000, log, now: () => time })
  await ledger.commit({ kind: 'config.reload' })
  time += 61_000
  const [first = ''] = filesIn(folder)
  // Its new name is taken.
  mkdirSync(`${first}.pruned`)
  for (let round = 0; round < 3; round++) await ledger.commit({ kind: 'config.reload' })
  t.ok(filesIn(folder).includes(first))
  t.same(prunedIn(folder), [])
  t.match(events, [{ event: 'audit.unpruned' }])
  t.equal(events.length, 1)
  rmdirSync(`${first}.pruned`)
  await ledger.commit({ kind: 'config.reload' })
  t.notOk(filesIn(folder).includes(first))
  t.equal(prunedIn(folder).length, 1)
  await ledger.close()
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
    const order = linesIn(folder).map(({ kind }) => kind)
    t.ok(order.indexOf('lost') > order.lastIndexOf('request'), 'lines are in the order of times')
    t.equal(linesIn(folder).filter(({ kind }) => kind === 'request').length, 19_998)
  }
)

t.test('a closed ledger refuses commits at once', async t => {
  const ledger = ledgerIn(ledgerFolder(t))
  await ledger.commit({ kind: 'act' })
  await ledger.close()
  await t.rejects(ledger.commit({ kind: 'act' }), { message: 'the audit ledger is closed' })
})

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

t.test('a head that was slow to store is followed by the next without a further entry', async t => {
  const folder = ledgerFolder(t)
  const heads = headFiles(folder)
  const stored: string[] = []
  const gate = Promise.withResolvers<void>()
  const write = async (chain: string, head: string) => {
    stored.push(head)
    if (stored.length === 1) await gate.promise
    await heads.write(chain, head)
  }
  const ledger = ledgerIn(folder, { heads: { ...heads, write } })
  t.teardown(() => ledger.close())
  await ledger.commit({ kind: 'config.reload' })
  await until('the first head is on its way', () => stored.length === 1)
  const begun = performance.now()
  await until('another head is due', () => performance.now() - begun > 1100)
  const last = await ledger.commit({ kind: 'config.reload' })
  gate.resolve()
  const [chain = ''] = chainsIn(folder).keys()
  const [key] = keys()
  await until(
    'the head names the last line',
    async () => readHead(chain, (await heads.read(chain)) ?? '', [key])?.seq === last,
    10_000
  )
})

t.test('a head never names a line that is not on disk, also when it is closed', async t => {
  const folder = ledgerFolder(t)
  const ledger = ledgerIn(folder, { maxFileBytes: 2048 })
  await ledger.commit({ kind: 'config.reload' })
  const [chain = ''] = chainsIn(folder).keys()
  const next = chainFilePath(folder, chain, 2)
  mkdirSync(next)
  await t.rejects(async () => {
    for (;;) await ledger.commit({ kind: 'config.reload' })
  })
  await ledger.close()
  rmdirSync(next)
  const log = { info: ignore, warn: ignore, error: fail }
  const after = ledgerIn(folder, { log })
  await after.commit({ kind: 'config.reload' })
  await after.close()
  t.same(
    linesIn(folder).filter(({ kind }) => kind === 'head'),
    [],
    'nothing looks like a cut'
  )
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
  const [key] = keys()
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
