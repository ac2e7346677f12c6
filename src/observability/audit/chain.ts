/** A chain of the ledger while it is written: a file of its own, or lines among those of a log. */
import { type KeyObject, randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { escapeInJson } from '../unprintable.ts'
import { chainOf, fileOf, macOf, split, withMac } from './line.ts'

/** Longer lines are never written. */
const maxLineBytes = 64 * 1024
const maxText = 512
const maxMembers = 32
const maxFileMs = 86_400_000

/** A line that is to be written. */
export interface Fact {
  readonly at: number
  /** From `kind` on, without its MAC. */
  readonly json: string
}

/** @param fact an entry, or what the ledger says of itself */
export function factOf(fact: object): Fact {
  return { at: Date.now(), json: escapeInJson(JSON.stringify(fact, bounded).slice(1)) }
}

/** A folder, or what takes lines. */
export type Place = string | ((lines: string) => void)

const nameAt = (time: Date): string =>
  `${time.toISOString().replaceAll(/[:.]/g, '-')}-${randomBytes(3).toString('hex')}`

const noOthers = { others: {}, pruned: [] }

export class Chain {
  readonly name = nameAt(new Date())
  /** Of its last line. */
  mac = ''
  readonly #place: Place
  readonly #key: KeyObject
  readonly #endAt = Date.now() + maxFileMs
  #bytes = 0
  #seq = 0
  #file: FileHandle | undefined

  constructor(place: Place, key: KeyObject) {
    this.#place = place
    this.#key = key
  }

  /**
   * Writes its first line, which names the last `mac` of each other file: one that is cut or deleted
   * later is missed.
   * @returns chains whose files were deleted, since nothing was written to them for `keepMs`
   * @throws what the file system throws
   */
  async begin(keepMs: number): Promise<readonly string[]> {
    const folder = typeof this.#place === 'string' ? this.#place : undefined
    const { others, pruned } = folder === undefined ? noOthers : await readOthers(folder, keepMs)
    const path = folder && join(folder, fileOf(this.name))
    if (path !== undefined) this.#file = await open(path, 'ax', 0o600)
    const ofOthers = { others, ...(pruned.length > 0 && { pruned }) }
    try {
      await this.write([factOf({ kind: 'opened', pid: process.pid, ...ofOthers })])
    } catch (error) {
      // Each try would leave a file behind.
      if (path !== undefined) await unlink(path).catch(() => {})
      await this.close()
      throw error
    }
    return pruned
  }

  /** Whether its file is so large or so old that another one begins. */
  isFull(maxBytes: number): boolean {
    return this.#file !== undefined && (this.#bytes >= maxBytes || Date.now() >= this.#endAt)
  }

  /** @throws what the file system throws; then nothing more may be written to it */
  async write(facts: readonly Fact[]): Promise<void> {
    let lines = ''
    for (const { at, json } of facts) {
      const head = { seq: ++this.#seq, chain: this.name, at: new Date(at).toISOString() }
      const body = `${JSON.stringify(head).slice(0, -1)},${json.slice(0, -1)}`
      this.mac = macOf(this.#key, this.mac, body)
      lines += `${withMac(body, this.mac)}\n`
    }
    if (typeof this.#place !== 'string') return this.#place(lines)
    await this.#file?.appendFile(lines)
    this.#bytes += Buffer.byteLength(lines)
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
  const bytes = buffer.subarray(0, bytesRead)
  const end = bytes.lastIndexOf(0x0a)
  if (end < 0) return ''
  return split(bytes.subarray(bytes.lastIndexOf(0x0a, end - 1) + 1, end))?.mac ?? ''
}

/** For JSON: texts are cut, and so are the lists of fields and details. */
function bounded(name: string, value: unknown): unknown {
  if (typeof value === 'string') return cut(value)
  if (typeof value !== 'object' || value === null) return value
  if (name !== 'fields' && name !== 'detail') return value
  const set = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(set.slice(0, maxMembers).map(([each, member]) => [cut(each), member]))
}

function cut(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText)}…`
}
