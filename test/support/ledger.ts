/** A ledger in a folder, with its heads beside the files. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
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
