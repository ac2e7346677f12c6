/** Config folders of raw text, for what no object could express, and the faults that loading them gives. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { ConfigError, type Fault } from '../../src/config/schema/faults.ts'
import { loadConfig } from '../../src/config/read/load.ts'
import type { Environment } from '../../src/config/read/inputs.ts'
import { temporaryFolder } from './temporary.ts'

/** Of the password `ant.design`. */
export const knownHash =
  '$argon2id$v=19$m=19456,t=2,p=1$UIDpPlOgt23l1C1NIuyTgg$GUx+Ngh31iqO/lwsmPpqSC9QDzRyME5ieVVUa3Fs318'

export type Texts = Readonly<Record<string, string | Uint8Array | null>>

const sound: Texts = {
  'gateway.yaml': '{}',
  'routes.yaml': '{}',
  'limits.yaml': '{}',
  'users.yaml': 'users: {}'
}

/**
 * A folder with the files that a gateway needs; `texts` replaces them or adds others, and null
 * leaves one out.
 */
export function textFolder(cleanUp: (undo: () => unknown) => void, texts: Texts = {}): string {
  const folder = temporaryFolder()
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  writeTexts(folder, texts)
  return folder
}

export function writeTexts(folder: string, texts: Texts): void {
  for (const [name, text] of Object.entries({ ...sound, ...texts })) {
    if (text === null) rmSync(join(folder, name), { force: true })
    else {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
  }
}

/** Each fault and warning as `file:line path: message`, the file without its folder. */
export function faultsOf(folder: string, environment: Environment = {}): string[] {
  const show = ({ file, line, path, message, severity }: Fault) =>
    `${relative(folder, file)}:${line} ${path}: ${severity === 'warning' ? 'warning: ' : ''}${message}`
  try {
    return loadConfig(folder, environment).warnings.map(show)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map(show)
  }
}

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Members of mappings are added, at any depth; all else is replaced. */
export const merged = (base: unknown, over: unknown): unknown => {
  if (!isTree(base) || !isTree(over)) return over
  const members = Object.entries(over).map(([key, value]) => [key, merged(base[key], value)])
  return { ...base, ...Object.fromEntries(members) }
}
