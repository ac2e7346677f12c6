/** A chain of the ledger while it is written: a file of its own, or lines among those of a log. */
import { type KeyObject, randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { chainOf, type Fact, factOf, fileOf, macOf, split, withMac } from './line.ts'

export type Place = string | ((lines: string) => void)

/** Longer lines are never written, but for first ones: they name all files. */
const maxLineBytes = 64 * 1024
const maxFileMs = 86_400_000

export class Chain {
  readonly name: string
  /** Of its last line. */
  mac = ''
  readonly #place: Place
  readonly #key: KeyObject
  readonly #endAt = Date.now() + maxFileMs
  #bytes = 0
  #seq = 0
  #file: FileHandle | undefined

  constructor(place: Place, key: KeyObject) {
    const time = new Date().toISOString().replaceAll(/[:.]/g, '-')
    this.name = `${time}-${randomBytes(3).toString('hex')}`
    this.#place = place
    this.#key = key
  }

  /**
   * Its first line names the ends of other files: one that is cut or deleted later is missed.
   * @returns chains whose files were deleted, since nothing was written to them for `keepMs`
   */
  async begin(keepMs: number): Promise<readonly string[]> {
    const opened = { kind: 'opened', pid: process.pid }
    if (typeof this.#place !== 'string') {
      await this.write([factOf({ ...opened, others: {} })])
      return []
    }
    const { others, pruned } = await readOthers(this.#place, keepMs)
    const path = join(this.#place, fileOf(this.name))
    this.#file = await open(path, 'ax', 0o600)
    try {
      await this.write([factOf({ ...opened, others, ...(pruned.length > 0 && { pruned }) })])
      return pruned
    } catch (error) {
      // Each try would leave a file behind.
      await unlink(path).catch(() => {})
      await this.close()
      throw error
    }
  }

  isFull(maxBytes: number): boolean {
    return this.#file !== undefined && (this.#bytes >= maxBytes || Date.now() >= this.#endAt)
  }

  /** @throws what the file system throws; then nothing more may be written to it */
  async write(facts: readonly Fact[]): Promise<void> {
    let [mac, lines] = [this.mac, '']
    for (const { at, json } of facts) {
      const head = JSON.stringify({ seq: ++this.#seq, chain: this.name, at }).slice(0, -1)
      const body = `${head},${json}`
      mac = macOf(this.#key, mac, body)
      lines += `${withMac(body, mac)}\n`
    }
    if (typeof this.#place === 'string') await this.#file?.appendFile(lines)
    else this.#place(lines)
    this.#bytes += Buffer.byteLength(lines)
    this.mac = mac
  }

  async sync(): Promise<void> {
    await this.#file?.datasync()
  }

  async close(): Promise<void> {
    await this.#file?.close().catch(() => {})
  }
}

/** By chain the last `mac` of each file of the folder; those that are too old are deleted. */
async function readOthers(folder: string, keepMs: number) {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const others: Record<string, string> = {}
  const pruned: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    const chain = chainOf(name)
    if (chain === undefined) continue
    await using file = await open(join(folder, name))
    const { mtimeMs, size } = await file.stat()
    if (keepMs > 0 && Date.now() - mtimeMs > keepMs) {
      await unlink(join(folder, name))
      pruned.push(chain)
    } else others[chain] = await lastMac(file, size)
  }
  return { others, pruned }
}

/** @returns of the last whole line; an empty text where there is none */
async function lastMac(file: FileHandle, size: number): Promise<string> {
  const length = Math.min(size, 2 * maxLineBytes)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
  const end = buffer.subarray(0, bytesRead).lastIndexOf(0x0a)
  return split(buffer.subarray(0, Math.max(0, end)))?.mac ?? ''
}
