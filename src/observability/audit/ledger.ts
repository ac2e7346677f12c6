/** The audit ledger of a process: chains of lines, each signed together with the one before. */
import { type KeyObject, randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import {
  type AuditEntry,
  chainOf,
  type Fact,
  factOf,
  fileOf,
  macOf,
  split,
  withMac
} from './line.ts'

type Place = string | ((lines: string) => void)

/** Longer lines are never written, but for first ones: they name all files. */
const maxLineBytes = 64 * 1024
const maxFileMs = 86_400_000

interface Options {
  readonly to: Place
  readonly key: KeyObject
  readonly maxFileBytes: number
  /** Files that were last written longer ago are deleted; 0: none. */
  readonly keepMs: number
  readonly heads?: Heads | undefined
  readonly log: Pick<Logger, 'info' | 'error'>
}

/** The last `mac` of each chain, where who can write the files cannot. */
export interface Heads {
  readonly set: (chain: string, mac: string) => Promise<unknown>
  readonly remove: (chains: readonly string[]) => Promise<unknown>
}

const maxWaiting = 20_000
const batchSize = 500
const batchMs = 50
const retryMs = 1000

/** While it is written: a file of its own, or lines among those of a log. */
class Chain {
  readonly name: string
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

  /** Names the ends of other files: a cut is noticed. @returns chains of deleted files */
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

export class Ledger {
  failing: { readonly reason: string; readonly since: number } | undefined
  headFailing: string | undefined
  lost = 0
  readonly #options: Options
  readonly #waiting: Fact[] = []
  /** Whether somebody waits until all of it is on disk. */
  #mustSync = false
  /** Undefined before its first line, and after its last. */
  #chain: Chain | undefined
  #last: Chain | undefined
  /** So many of the lost entries are told of in a line. */
  #lostTold = 0
  #writing: Promise<void> | undefined
  #batch: NodeJS.Timeout | undefined
  readonly #retry: NodeJS.Timeout

  constructor(options: Options) {
    this.#options = options
    // The file is there from the start, or it is known why not.
    void this.#write()
    this.#retry = setInterval(() => void this.#write(), retryMs).unref()
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Never throws, never waits; what cannot be kept is counted. */
  append(entry: AuditEntry): void {
    if (this.#waiting.length >= maxWaiting) this.lost++
    else this.#waiting.push(factOf(entry))
    if (this.failing === undefined) {
      this.#batch ??= setTimeout(() => void this.#write(), batchMs).unref()
    }
  }

  /** @throws the reason while it cannot be written */
  check(): void {
    if (this.failing !== undefined) throw new Error(this.failing.reason)
  }

  /** @returns when its line is on disk @throws the reason where that failed; then the line waits */
  async commit(entry: AuditEntry): Promise<void> {
    if (this.failing !== undefined) this.append(entry)
    this.check()
    this.#waiting.push(factOf(entry))
    this.#mustSync = true
    await this.#write()
    this.check()
  }

  async close(): Promise<void> {
    clearInterval(this.#retry)
    await this.#write()
    if (this.#chain !== undefined) await this.#end(this.#chain).catch(() => {})
    await this.#storeHead()
    clearTimeout(this.#batch)
  }

  #write(): Promise<void> {
    clearTimeout(this.#batch)
    this.#batch = undefined
    this.#writing ??= this.#writeWaiting()
    return this.#writing
  }

  async #writeWaiting(): Promise<void> {
    // Entries of the same turn of the event loop are one batch.
    await Promise.resolve()
    try {
      while (this.#waiting.length > 0 || this.#chain === undefined) {
        await this.#writeBatch((this.#chain ??= await this.#begin()))
        if (this.failing !== undefined) {
          const line = { event: 'audit.writable', lost: this.lost }
          this.#options.log.info(line, 'the audit ledger is written again')
        }
        this.failing = undefined
        void this.#storeHead()
      }
      if (this.headFailing !== undefined) void this.#storeHead()
    } catch (error) {
      this.#fail(error as Error)
    }
    this.#mustSync = false
    this.#writing = undefined
  }

  async #begin(): Promise<Chain> {
    const { to, key, keepMs, heads } = this.#options
    const chain = new Chain(to, key)
    const pruned = await chain.begin(keepMs)
    this.#last = chain
    if (pruned.length > 0) void heads?.remove(pruned).catch(() => {})
    return chain
  }

  async #writeBatch(chain: Chain): Promise<void> {
    const batch = this.#waiting.slice(0, batchSize)
    const { lost } = this
    const count = lost - this.#lostTold
    await chain.write(count > 0 ? [...batch, factOf({ kind: 'lost', count })] : batch)
    if (this.#mustSync) await chain.sync()
    this.#waiting.splice(0, batch.length)
    this.#lostTold = lost
    // A first line alone may be long: it names all files.
    if (batch.length > 0 && chain.isFull(this.#options.maxFileBytes)) await this.#end(chain)
  }

  async #end(chain: Chain): Promise<void> {
    await chain.write([factOf({ kind: 'closed' })])
    this.#chain = undefined
    await chain.close()
  }

  /** A batch that failed is written again, to a new file; what the old one got of it stays there. */
  #fail(error: Error): void {
    void this.#chain?.close()
    this.#chain = undefined
    if (this.failing !== undefined) return
    const { code = error.message } = error as NodeJS.ErrnoException
    this.failing = { reason: code, since: Date.now() }
    this.#options.log.error(
      { event: 'audit.unwritable', err: error },
      'the audit ledger cannot be written: acts of operators are refused, other entries wait'
    )
  }

  /** Commands of one connection keep their order: no older end replaces a newer one. */
  async #storeHead(): Promise<void> {
    try {
      if (this.#last !== undefined) {
        await this.#options.heads?.set(this.#last.name, this.#last.mac)
      }
      this.headFailing = undefined
    } catch (error) {
      this.headFailing = (error as Error).message
    }
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
