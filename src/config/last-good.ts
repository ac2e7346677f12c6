/**
 * The config that ran last, kept in a folder of its own, so that a process can start beside files
 * that were refused since.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Config } from './schema/config.ts'

const name = 'last-good.json'

const kept = Type.Object({
  at: Type.String(),
  documents: Type.Record(Type.String(), Type.String())
})

export interface LastGood {
  /** When it was accepted. */
  readonly at: string
  /** By absolute path. */
  readonly texts: ReadonlyMap<string, string>
}

/** @throws the system's error */
export function saveLastGood(state: string, { documents }: Pick<Config, 'documents'>): void {
  const file = join(state, name)
  const content = { at: new Date().toISOString(), documents }
  mkdirSync(state, { recursive: true, mode: 0o700 })
  writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** @returns undefined where none was kept, or it cannot be read */
export function readLastGood(state: string): LastGood | undefined {
  try {
    const { at, documents } = Value.Parse(kept, JSON.parse(readFileSync(join(state, name), 'utf8')))
    return { at, texts: new Map(Object.entries(documents)) }
  } catch {
    return undefined
  }
}
