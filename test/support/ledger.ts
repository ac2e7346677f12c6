/** A ledger in a folder, with its heads beside the files; the lines of a gateway's. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { chainsIn } from '../../src/observability/audit/chain-files.ts'
import { headFiles } from '../../src/observability/audit/head.ts'
import {
  createLedger,
  type LedgerOptions,
  type OpenLedger
} from '../../src/observability/audit/ledger.ts'
import { auditKeys } from '../../src/observability/audit/line.ts'

export const ledgerKey = 'an audit key of at least thirty-two bytes'

const ignore = () => {}

export function ledgerIn(folder: string, options: Partial<LedgerOptions> = {}): OpenLedger {
  const [key] = auditKeys([ledgerKey])
  if (key === undefined) throw new Error('no key')
  return createLedger({
    folder,
    keys: [key],
    maxFileBytes: 1024 ** 2,
    maxFileMs: 86_400_000,
    keepMs: 0,
    now: Date.now,
    heads: headFiles(folder),
    log: { info: ignore, warn: ignore, error: ignore },
    ...options
  })
}

export function ledgerFolder(test: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  test.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export type LedgerLine = Readonly<Record<string, unknown>>

/** What is written so far in the ledger of a gateway with this config folder. */
export function linesIn(configFolder: string): LedgerLine[] {
  return [...chainsIn(join(configFolder, 'audit')).values()].flat().flatMap(({ path }) => {
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line) as LedgerLine)
  })
}
