/** Writes the files of `init`: all or none, and a new one never in the place of another. */
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { cannotWrite } from '../replace-file.ts'

/** Content by name, relative to the folder. */
export type Files = ReadonlyMap<string, string>

/** Only its owner may read it. */
export const secretFile = '.env'
/** The only file of a new config that a folder may have: lines are added to it. */
export const ignoreFile = '.gitignore'

const newNames = [
  'gateway.yaml',
  'routes.yaml',
  'limits.yaml',
  'users.yaml',
  secretFile,
  'contracts',
  'schema'
]

/** Files and folders that stand where `init` writes. */
export function namesInTheWay(folder: string): string[] {
  return newNames.filter(name => existsSync(join(folder, name)))
}

/**
 * @param flag `wx` refuses to replace a file
 * @throws CommandError when one cannot be written; those before it are removed then
 */
export function writeFiles(folder: string, files: Files, flag: 'w' | 'wx'): void {
  const written: string[] = []
  for (const [name, content] of files) {
    const file = join(folder, name)
    try {
      mkdirSync(dirname(file), { recursive: true })
      if (name === ignoreFile && existsSync(file)) {
        ignoreSecret(file, content)
        continue
      }
      const handle = openSync(file, flag, name === secretFile ? 0o600 : 0o644)
      written.push(file)
      try {
        writeFileSync(handle, content)
      } finally {
        closeSync(handle)
      }
    } catch (error) {
      for (const each of written) rmSync(each, { force: true })
      throw cannotWrite(file, error)
    }
  }
}

function ignoreSecret(file: string, lines: string): void {
  const text = readFileSync(file, 'utf8')
  if (text.split(/\r?\n/).includes(secretFile)) return
  appendFileSync(file, text === '' || text.endsWith('\n') ? lines : `\n${lines}`)
}
