/** Reads the end of a chain: its last genuine line, and what a crash left behind it. */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { type AuditKey, authenticityOf, type ReadLine, readLine } from './line.ts'

/** Bytes behind the last genuine line that are no lines: a write that a crash cut. */
export interface TornBytes {
  readonly bytes: number
  readonly sha256: string
}

export interface Tail {
  readonly last: ReadLine | undefined
  readonly torn: TornBytes | undefined
  /** The file does not end in a line break. */
  readonly isOpenEnded: boolean
}

/** More than what is written in a second, which is what a crash of the machine can lose. */
const maxTailBytes = 8 * 1024 * 1024
const lineBreak = 0x0a

/** @param size of the file */
export async function readTail(
  file: FileHandle,
  size: number,
  keys: readonly AuditKey[]
): Promise<Tail> {
  const bytes = await lastBytes(file, size)
  const { length } = bytes
  const isOpenEnded = length > 0 && bytes[length - 1] !== lineBreak
  let end = isOpenEnded ? length : length - 1
  while (end > 0) {
    const start = bytes.lastIndexOf(lineBreak, end - 1) + 1
    const text = bytes.subarray(start, end)
    const line = readLine(text)
    if (line !== undefined && authenticityOf(text, line, keys) === 'genuine') {
      return { last: line, torn: tornOf(bytes.subarray(end + 1)), isOpenEnded }
    }
    end = start - 1
  }
  return { last: undefined, torn: tornOf(bytes), isOpenEnded }
}

function tornOf(bytes: Buffer): TornBytes | undefined {
  if (bytes.length === 0) return undefined
  return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** @returns undefined for a file that is not there, or holds no genuine line at its end */
export async function lastLineOf(
  path: string,
  keys: readonly AuditKey[]
): Promise<ReadLine | undefined> {
  let file: FileHandle | undefined
  try {
    file = await open(path, 'r')
    return (await readTail(file, (await file.stat()).size, keys)).last
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  } finally {
    await file?.close()
  }
}

/** @returns undefined where the end of the file does not hold the line of this number */
export async function findMac(
  file: FileHandle,
  size: number,
  seq: number
): Promise<string | undefined> {
  const bytes = await lastBytes(file, size)
  let end = bytes.lastIndexOf(lineBreak)
  while (end > 0) {
    const start = bytes.lastIndexOf(lineBreak, end - 1) + 1
    const line = readLine(bytes.subarray(start, end))
    if (line?.seq === seq) return line.mac
    end = start - 1
  }
  return undefined
}

async function lastBytes(file: FileHandle, size: number): Promise<Buffer> {
  const length = Math.min(size, maxTailBytes)
  const bytes = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const position = size - length + filled
    const { bytesRead } = await file.read(bytes, filled, length - filled, position)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes
}
