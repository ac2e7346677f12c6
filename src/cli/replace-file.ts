import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import type { Folders } from '../config/read/files.ts'
import { createInputs, decodeText, type Environment, NotUtf8Error } from '../config/read/inputs.ts'
import { loadConfig } from '../config/read/load.ts'
import { ConfigError } from '../config/schema/faults.ts'
import { CommandError } from './command.ts'

export function readText(file: string): string {
  try {
    return decodeText(fs.readFileSync(file))
  } catch (error) {
    if (!(error instanceof NotUtf8Error)) throw error
    throw new CommandError(`${file}:${error.line}: ${error.message}.`)
  }
}

/** No reader sees half of it; mode and owner stay. @param mode of a new file @throws CommandError */
export function replaceFile(file: string, content: string, mode = 0o644): void {
  const target = fs.existsSync(file) ? fs.realpathSync(file) : file
  const former = fs.statSync(target, { throwIfNoEntry: false })
  const draft = `${target}.${randomUUID()}.tmp`
  try {
    fs.writeFileSync(draft, content, { flag: 'wx', flush: true, mode: 0o600 })
    fs.chmodSync(draft, former === undefined ? mode : former.mode & 0o777)
    // Only root may give a file to others.
    const isRoot = process.getuid?.() === 0
    if (former !== undefined && isRoot) fs.chownSync(draft, former.uid, former.gid)
    fs.renameSync(draft, target)
  } catch (error) {
    if (fs.existsSync(draft)) fs.rmSync(draft)
    throw cannotWrite(file, error)
  }
}

const advice: Readonly<Record<string, string>> = {
  EBUSY: ' It is mounted alone, so nothing can take its place: mount its folder.',
  ENOENT: ' Does its folder exist?'
}

export function cannotWrite(file: string, error: unknown): CommandError {
  const { code = 'unknown reason' } = error as NodeJS.ErrnoException
  return new CommandError(`${file} cannot be written (${code}).${advice[code] ?? ''}`)
}

/** @param texts by absolute path, in the place of those of the files */
export function faultsWith(folders: Folders, texts: ReadonlyMap<string, string>, env: Environment) {
  try {
    loadConfig(folders, env, { inputs: createInputs(texts) })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.filter(({ severity }) => severity === 'fault')
  }
}
