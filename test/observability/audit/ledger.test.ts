/** The ledger on disk: what is committed, batched, recovered, rotated, pruned and refused. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chainsIn } from '../../../src/observability/audit/chain-files.ts'
import { headFiles } from '../../../src/observability/audit/head.ts'
import { createLedger, type LedgerOptions } from '../../../src/observability/audit/ledger.ts'
import { auditKeys } from '../../../src/observability/audit/line.ts'

const [key] = auditKeys(['an audit key of at least thirty-two bytes'])
if (key === undefined) throw new Error('no key')

function folderOf(test: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  test.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function ledgerIn(folder: string, options: Partial<LedgerOptions> = {}) {
  const ignore = () => {}
  return createLedger({
    folder,
    keys: [key as NonNullable<typeof key>],
    maxFileBytes: 1024 ** 2,
    maxFileMs: 86_400_000,
    keepMs: 0,
    now: Date.now,
    heads: headFiles(folder),
    log: { info: ignore, warn: ignore, error: ignore },
    ...options
  })
}

function linesIn(folder: string): Array<Record<string, unknown>> {
  return [...chainsIn(folder).values()].flat().flatMap(({ path }) => {
    const texts = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return texts.map(text => JSON.parse(text) as Record<string, unknown>)
  })
}

t.test('a committed line is in the file before commit returns', async t => {
  const folder = folderOf(t)
  const ledger = ledgerIn(folder)
  const seq = await ledger.commit({ kind: 'act', act: 'sessions.close', outcome: 'begun' })
  const line = linesIn(folder).find(each => each['seq'] === seq)
  t.match(line, { kind: 'act', act: 'sessions.close', outcome: 'begun' })
  await ledger.close()
})

t.test(
  'a second process writes a chain of its own, and a restart goes on with the first',
  async t => {
    const folder = folderOf(t)
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
  const folder = folderOf(t)
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
