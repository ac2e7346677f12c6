/** The config that ran last, with which a process can start beside files that were refused. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../json/values.ts'
import type { Config } from './schema/config.ts'

const name = 'last-good.json'

export function saveLastGood(state: string, { documents }: Pick<Config, 'documents'>): void {
  const file = join(state, name)
  const content = { at: new Date().toISOString(), documents }
  mkdirSync(state, { recursive: true, mode: 0o700 })
  writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

export function readLastGood(state: string) {
  try {
    const kept: unknown = JSON.parse(readFileSync(join(state, name), 'utf8'))
    if (!isRecord(kept) || !isRecord(kept['documents'])) return undefined
    const texts = Object.entries(kept['documents']).map(
      ([file, text]) => [file, String(text)] as const
    )
    return { at: String(kept['at']), texts: new Map(texts) }
  } catch {
    return undefined
  }
}
