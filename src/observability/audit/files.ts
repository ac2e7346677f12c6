/** The files of the ledger: a process begins one of its own, and another each day. */
import { randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { chainOf, fileOf, split } from './line.ts'

/** Longer lines are never written. */
const maxLineBytes = 64 * 1024

export const newChain = (): string =>
  `${new Date().toISOString().replaceAll(/[:.]/g, '-')}-${randomBytes(3).toString('hex')}`

/** The other files of the folder with their last MACs, for the first line of a new file. */
export interface Others {
  /** By chain the `mac` of its last line: one that is cut or deleted later is missed. */
  readonly others: Readonly<Record<string, string>>
  /** Chains whose files were deleted, since nothing was written to them for `keep`. */
  readonly pruned: readonly string[]
}

/** @throws what the file system throws */
export async function createFile(
  folder: string,
  chain: string,
  keepMs: number
): Promise<Others & { readonly file: FileHandle }> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const others: Record<string, string> = {}
  const pruned: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    const other = chainOf(name)
    if (other === undefined) continue
    const file = await open(join(folder, name))
    try {
      const { mtimeMs, size } = await file.stat()
      if (keepMs > 0 && Date.now() - mtimeMs > keepMs) {
        await unlink(join(folder, name))
        pruned.push(other)
      } else others[other] = await lastMac(file, size)
    } finally {
      await file.close()
    }
  }
  const file = await open(join(folder, fileOf(chain)), 'ax', 0o600)
  return { file, others, pruned }
}

/** @returns of the last whole line; an empty text where there is none */
async function lastMac(file: FileHandle, size: number): Promise<string> {
  const length = Math.min(size, 2 * maxLineBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
  const bytes = buffer.subarray(0, bytesRead)
  const end = bytes.lastIndexOf(0x0a)
  if (end < 0) return ''
  return split(bytes.subarray(bytes.lastIndexOf(0x0a, end - 1) + 1, end))?.mac ?? ''
}

/** Writes all of it: one call may write less. */
export async function writeAll(file: FileHandle, text: string): Promise<number> {
  const bytes = Buffer.from(text)
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await file.write(bytes, written)
    written += bytesWritten
  }
  return written
}
