/** The only reader of config's files, so that a watcher knows all of them, and what it read. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError, type Fault, faultOfFile, reasonOf } from '../schema/faults.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const maxFileBytes = 1024 * 1024

export class NotUtf8Error extends RangeError {
  readonly line: number

  constructor(line: number) {
    super('the file is not UTF-8 text: save it as UTF-8')
    this.line = line
  }
}

/** Two names could become one else. @throws NotUtf8Error */
export function decodeText(content: Buffer): string {
  const text = content.toString('utf8')
  if (isUtf8(content)) return text
  // The first replacement character stands where the first invalid byte was.
  const [before = ''] = text.split('\ufffd', 1)
  throw new NotUtf8Error(before.split('\n').length)
}

export type Inputs = ReturnType<typeof createInputs>

/** @param texts by absolute path, instead of the files */
export function createInputs(texts: ReadonlyMap<string, string> = new Map()) {
  const fingerprints: Record<string, string> = {}
  const documents: Record<string, string> = {}
  const fingerprint = (file: string) => (fingerprints[file] ??= fingerprintOf(file))
  /** @throws the system's error; RangeError for a file over 1 MiB */
  const readBytes = (file: string): Buffer => {
    fingerprint(file)
    const text = texts.get(file)
    if (text !== undefined) return Buffer.from(text)
    if (statSync(file).size > maxFileBytes) throw new RangeError('the file is larger than 1 MiB')
    return readFileSync(file)
  }
  /** @throws as `readBytes`; NotUtf8Error */
  const read = (file: string) => decodeText(readBytes(file)).replace(/^\ufeff/, '')
  return {
    read,
    readBytes,
    /** A file that is missing is watched too. */
    isThere: (file: string) => texts.has(file) || fingerprint(file) !== '',
    /** As `read`; the text is kept. */
    readDocument: (file: string) => (documents[file] = read(file)),
    fingerprints: () => ({ ...fingerprints }),
    documents: () => ({ ...documents })
  }
}

export function faultOfReading(file: string, error: unknown) {
  const line = error instanceof NotUtf8Error ? error.line : 0
  if (reasonOf(error) === 'ENOENT') {
    return faultOfFile(file, 'there is no such file: write one, if only with {}')
  }
  const isOfContent = error instanceof RangeError
  const reason = isOfContent ? error.message : `the file cannot be read (${reasonOf(error)})`
  return faultOfFile(file, reason, line)
}

/** Changes whenever a file is replaced or written to; empty where there is none. */
export function fingerprintOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch {
    return ''
  }
}

/** The environment wins. @throws ConfigError for a file that cannot be read */
function withEnvFile(folder: string, environment: Environment, inputs: Inputs): Environment {
  const file = resolve(folder, '.env')
  try {
    return { ...parseEnv(inputs.read(file)), ...environment }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // ENOTDIR: the missing files of the folder say so.
    if (code === 'ENOENT' || code === 'ENOTDIR') return environment
    throw new ConfigError([faultOfReading(file, error)])
  }
}

export type FolderReading = ReturnType<typeof openFolder>

/** @param folders of which a later one wins @throws ConfigError for a `.env` that cannot be read */
export function openFolder(
  folders: string | readonly string[],
  environment: Environment,
  inputs = createInputs()
) {
  const all = [folders].flat().map(folder => resolve(folder))
  const withFile = (known: Environment, folder: string) => withEnvFile(folder, known, inputs)
  const faults: Fault[] = []
  return {
    folder: all.at(-1) ?? '',
    bases: all.slice(0, -1),
    environment: all.reduceRight(withFile, environment),
    inputs,
    faults
  }
}
