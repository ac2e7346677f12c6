/**
 * The audit ledger: signed lines, each of which holds on to the one before. A process begins a
 * chain of its own, in a file whose first line names the ends of all others; or it writes its chain
 * to standard output.
 */
import type { KeyObject } from 'node:crypto'
import { type FileHandle, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { escapeInJson } from '../unprintable.ts'
import type { AuditEntry } from './entry.ts'
import { createFile, newChain, writeAll } from './files.ts'
import { fileOf, signed } from './line.ts'

/** The ledger cannot be written. */
class LedgerUnavailable extends Error {}

interface Options {
  /** A folder, or what takes a line. */
  readonly to: string | ((line: string) => void)
  readonly key: KeyObject
  readonly maxFileBytes: number
  /** Files that were last written longer ago are deleted; 0: none. */
  readonly keepMs: number
  readonly log: {
    readonly info: (fields: object, message: string) => void
    readonly error: (fields: object, message: string) => void
  }
}

/** Keeps the last `mac` of each chain where who can write the files cannot. */
export interface Heads {
  readonly set: (chain: string, mac: string) => Promise<unknown>
  readonly remove: (chains: readonly string[]) => Promise<unknown>
}

export interface LedgerStatus {
  readonly failing?: { readonly reason: string; readonly since: number } | undefined
  /** Why the last head is not stored. */
  readonly headFailing?: string | undefined
  readonly waiting: number
  readonly lost: number
  readonly written: number
}

interface Waiting {
  readonly at: number
  /** The line from `kind` on, without its MAC. */
  readonly json: string
  readonly done?: PromiseWithResolvers<void> | undefined
}

const maxText = 512
const maxMembers = 32
const maxWaiting = 20_000
const batchSize = 500
const batchMs = 50
const retryMs = 1000
const maxFileMs = 86_400_000
const noFile = { file: undefined, others: {}, pruned: [] }

export class Ledger {
  readonly #options: Options
  #waiting: Waiting[] = []
  #isOpen = false
  #chain = ''
  #seq = 0
  #mac = ''
  #file: FileHandle | undefined
  #bytes = 0
  #endAt = 0
  /** So many of the lost entries are told of in a line. */
  #lostTold = 0
  #status: { -readonly [K in keyof LedgerStatus]: LedgerStatus[K] } = {
    waiting: 0,
    lost: 0,
    written: 0
  }
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #heads: Heads | undefined
  #storedMac = ''
  #storing: Promise<void> | undefined
  #headTimer: NodeJS.Timeout | undefined

  constructor(options: Options) {
    this.#options = options
    // The file is there from the start, or it is known why not.
    this.#writeAfter(batchMs)
  }

  status(): LedgerStatus {
    return { ...this.#status, waiting: this.#waiting.length }
  }

  /** From now on the end of the chain is stored there too. */
  storeHeads(heads: Heads): void {
    this.#heads = heads
    this.#storeHead()
  }

  /** Records a fact soon. Never throws, never waits; what cannot be kept is counted. */
  append(entry: AuditEntry): void {
    if (this.#waiting.length >= maxWaiting) this.#status.lost++
    else this.#add(entry)
  }

  /** @throws LedgerUnavailable while it cannot be written */
  check(): void {
    const { failing } = this.#status
    if (failing !== undefined) throw new LedgerUnavailable(failing.reason)
  }

  /**
   * Records a fact.
   * @returns when its line is on disk
   * @throws LedgerUnavailable where that failed; then the line waits
   */
  async commit(entry: AuditEntry): Promise<void> {
    if (this.#status.failing !== undefined) {
      this.append(entry)
      return this.check()
    }
    const done = Promise.withResolvers<void>()
    this.#add(entry, done)
    void this.#write()
    await done.promise
  }

  /** Writes what waits, as far as it can be written. */
  async close(): Promise<void> {
    await this.#writing
    if (this.#isOpen) this.#add({ kind: 'closed' })
    await this.#write()
    await this.#storing
    this.#storeHead()
    await this.#storing
    clearTimeout(this.#timer)
    clearTimeout(this.#headTimer)
    await this.#closeFile()
  }

  #add(fact: object, done?: PromiseWithResolvers<void>): void {
    this.#waiting.push({ ...waitingFor(fact), done })
    this.#writeAfter(batchMs)
  }

  #writeAfter(ms: number): void {
    this.#timer ??= setTimeout(() => {
      // It may find a write that is still running, which leaves the next one to another timer.
      this.#timer = undefined
      void this.#write()
    }, ms).unref()
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeWaiting().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeWaiting(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // Entries of the same turn of the event loop are one batch.
    await Promise.resolve()
    while (this.#waiting.length > 0 || this.#chain === '' || this.#status.failing !== undefined) {
      const batch = this.#waiting.splice(0, batchSize)
      try {
        if (!this.#isOpen) await this.#begin()
        await this.#writeBatch(batch)
      } catch (error) {
        return this.#fail(error as Error, batch)
      }
      for (const { done } of batch) done?.resolve()
      this.#recover()
      this.#storeHead()
    }
  }

  async #begin(): Promise<void> {
    const { to, keepMs } = this.#options
    const chain = newChain()
    const { file, others, pruned } =
      typeof to === 'string' ? await createFile(to, chain, keepMs) : noFile
    this.#file = file
    this.#chain = chain
    this.#seq = 0
    this.#mac = ''
    this.#bytes = 0
    this.#endAt = Date.now() + maxFileMs
    const ofOthers = { others, ...(pruned.length > 0 && { pruned }) }
    try {
      await this.#put([waitingFor({ kind: 'opened', pid: process.pid, ...ofOthers })])
    } catch (error) {
      // Each try would leave a file behind.
      if (typeof to === 'string') await unlink(join(to, fileOf(chain))).catch(() => {})
      throw error
    }
    this.#isOpen = true
    if (pruned.length > 0) void this.#heads?.remove(pruned).catch(() => {})
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const { lost } = this.#status
    const count = lost - this.#lostTold
    await this.#put(count > 0 ? [...batch, waitingFor({ kind: 'lost', count })] : batch)
    this.#lostTold = lost
    if (batch.some(({ done }) => done !== undefined)) await this.#file?.datasync()
    const isFull = this.#bytes >= this.#options.maxFileBytes || Date.now() >= this.#endAt
    if (this.#file === undefined || !isFull) return
    await this.#put([waitingFor({ kind: 'closed' })])
    await this.#closeFile()
  }

  async #put(entries: readonly Waiting[]): Promise<void> {
    const { to, key } = this.#options
    let [seq, mac, lines] = [this.#seq, this.#mac, '']
    for (const { at, json } of entries) {
      const head = { seq: ++seq, chain: this.#chain, at: new Date(at).toISOString() }
      const line = `${JSON.stringify(head).slice(0, -1)},${json}`
      const { text, mac: next } = signed(line, mac, key)
      mac = next
      lines += `${text}\n`
    }
    if (this.#file !== undefined) this.#bytes += await writeAll(this.#file, lines)
    else if (typeof to !== 'string') to(lines)
    this.#seq = seq
    this.#mac = mac
    this.#status.written += entries.length
  }

  /** The next batch begins another file. */
  async #closeFile(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    this.#isOpen = false
    await file?.close().catch(() => {})
  }

  /** A batch that failed is written again, to a new file; what the old one got of it stays there. */
  #fail(error: Error, batch: readonly Waiting[]): void {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code ?? message
    for (const { done } of batch) done?.reject(new LedgerUnavailable(reason))
    this.#waiting.unshift(...batch.map(({ at, json }) => ({ at, json })))
    void this.#closeFile()
    this.#writeAfter(retryMs)
    if (this.#status.failing !== undefined) return
    this.#status.failing = { reason, since: Date.now() }
    this.#options.log.error(
      { event: 'audit.unwritable', err: error },
      'the audit ledger cannot be written: acts of operators are refused, other entries wait'
    )
  }

  #recover(): void {
    if (this.#status.failing === undefined) return
    this.#status.failing = undefined
    const { lost } = this.#status
    this.#options.log.info({ event: 'audit.writable', lost }, 'the audit ledger is written again')
  }

  /** One at a time, so that no older end replaces a newer one. */
  #storeHead(): void {
    if (this.#heads === undefined || this.#storedMac === this.#mac) return
    this.#storing ??= this.#store(this.#heads, this.#mac)
  }

  async #store(heads: Heads, mac: string): Promise<void> {
    clearTimeout(this.#headTimer)
    try {
      await heads.set(this.#chain, mac)
      this.#storedMac = mac
      this.#status.headFailing = undefined
    } catch (error) {
      this.#status.headFailing = (error as Error).message
    }
    this.#storing = undefined
    if (this.#storedMac === this.#mac) return
    this.#headTimer = setTimeout(() => this.#storeHead(), retryMs).unref()
  }
}

/** @param fact an entry, or what the ledger says of itself */
function waitingFor(fact: object): Waiting {
  return { at: Date.now(), json: escapeInJson(JSON.stringify(fact, bounded).slice(1)) }
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
