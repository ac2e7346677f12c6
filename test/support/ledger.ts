/** A ledger in a folder; the lines of a gateway's. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ledger } from '../../src/observability/audit/ledger.ts'
import { auditKey } from '../../src/observability/audit/line.ts'

export const ledgerKey = 'an audit key of at least thirty-two bytes'

type Options = ConstructorParameters<typeof Ledger>[0]

const ignore = () => {}

export function ledgerIn(folder: string, options: Partial<Options> = {}): Ledger {
  return new Ledger({
    to: folder,
    key: auditKey(ledgerKey),
    maxFileBytes: 1024 ** 2,
    keepMs: 0,
    log: { info: ignore, error: ignore },
    ...options
  })
}

export type LedgerLine = Readonly<Record<string, unknown>>

/** The paths of its files, oldest first. */
export function ledgerFiles(configFolder: string): string[] {
  const folder = join(configFolder, 'audit')
  try {
    return readdirSync(folder)
      .toSorted()
      .map(name => join(folder, name))
  } catch {
    return []
  }
}

/** What is written so far in the ledger of a gateway with this config folder. */
export function linesIn(configFolder: string): LedgerLine[] {
  return ledgerFiles(configFolder).flatMap(path => {
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line) as LedgerLine)
  })
}
