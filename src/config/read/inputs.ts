/** The only reader of config's files, so that a watcher knows all of them, and what it read. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError, faultOfFile } from '../schema/faults.ts'
import type { Environment } from './references.ts'

const maxFileBytes = 1024 * 1024

export interface Inputs {
  /** Without a byte order mark. @throws as {@link readBytes}; NotUtf8Error */
  readonly read: (file: string) => string
  /** @throws the system's error; RangeError for a file over 1 MiB */
  readonly readBytes: (file: string) => Buffer
  /** A file that is missing is watched too. */
  readonly isThere: (file: string) => boolean
  /** As `read`, of a YAML file of config or own code: its text is kept. */
  readonly readDocument: (file: string) => string
  /** By absolute path: as `fingerprintOf`, before it was read first. */
  readonly fingerprints: () => Readonly<Record<string, string>>
  readonly documents: () => Readonly<Record<string, string>>
}

export class NotUtf8Error extends RangeError {
  readonly line: number

  constructor(line: number) {
    super('the file is not UTF-8 text: save it as UTF-8')
    this.line = line
  }
}

/** Two names could become one else. @throws NotUtf8Error */
export function decodeText(content: Buffer): string {
  if (!isUtf8(content)) throw new NotUtf8Error(firstLineNotUtf8(content))
  return content.toString('utf8')
}

function firstLineNotUtf8(content: Buffer): number {
  let start = 0
  for (let line = 1; ; line += 1) {
    const end = content.indexOf('\n', start)
    if (end === -1 || !isUtf8(content.subarray(start, end))) return line
    start = end + 1
  }
}

/** @param texts by absolute path, instead of the files */
export function createInputs(texts: ReadonlyMap<string, string> = new Map()): Inputs {
  const fingerprints: Record<string, string> = {}
  const documents: Record<string, string> = {}
  const fingerprint = (file: string) => (fingerprints[file] ??= fingerprintOf(file))
  const readBytes = (file: string): Buffer => {
    fingerprint(file)
    return contentOf(file, texts.get(file))
  }
  const read = (file: string) => decodeText(readBytes(file)).replace(/^\ufeff/, '')
  return {
    read,
    readBytes,
    isThere: file => texts.has(file) || fingerprint(file) !== '',
    readDocument: file => (documents[file] = read(file)),
    fingerprints: () => ({ ...fingerprints }),
    documents: () => ({ ...documents })
  }
}

/** A text that changes whenever a file is replaced or written to; empty for one that is not there. */
export function fingerprintOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch {
    return ''
  }
}

function contentOf(file: string, text: string | undefined): Buffer {
  if (text !== undefined) return Buffer.from(text)
  if (statSync(file).size > maxFileBytes) throw new RangeError('the file is larger than 1 MiB')
  return readFileSync(file)
}

/** The environment wins. @throws ConfigError for a file that cannot be read */
export function withEnvFile(folder: string, environment: Environment, inputs: Inputs): Environment {
  const file = resolve(folder, '.env')
  try {
    return { ...parseEnv(inputs.read(file)), ...environment }
  } catch (error) {
    if (error instanceof NotUtf8Error) {
      throw new ConfigError([faultOfFile(file, error.message, error.line)])
    }
    const { code, message } = error as NodeJS.ErrnoException
    // ENOTDIR: the folder is none, which the files that it has to have say.
    if (code === 'ENOENT' || code === 'ENOTDIR') return environment
    throw new ConfigError([faultOfFile(file, `the file cannot be read (${code ?? message})`)])
  }
}
