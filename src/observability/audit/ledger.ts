/**
 * The audit ledger: signed lines, each of which holds on to the one before. A process begins a
 * chain of its own, in a file whose first line names the ends of all others; or it writes its chain
 * to standard output.
 */
import type { KeyObject } from 'node:crypto'
import { type FileHandle, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { escapeInJson } from '../unprintable.ts'
import { type AuditEntry, type Ledger, LedgerUnavailable, membersOf } from './entry.ts'
import { createFile, newChain, writeAll } from './files.ts'
import { fileOf, signed } from './line.ts'

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
  readonly kind: string
  readonly members: Readonly<Record<string, unknown>>
  readonly done?: PromiseWithResolvers<void>
}

const maxWaiting = 20_000
const batchSize = 500
const batchMs = 50
const retryMs = 1000
const maxFileMs = 86_400_000
const noFile = { file: undefined, others: {}, pruned: [] }

export class AuditLedger implements Ledger {
  readonly #options: Options
  #heads: Heads | undefined
  #waiting: Waiting[] = []
  #chain = ''
  #seq = 0
  #mac = ''
  #file: FileHandle | undefined
  #bytes = 0
  #endAt = 0
  #lostNow = 0
  #status: { -readonly [K in keyof LedgerStatus]: LedgerStatus[K] } = {
    waiting: 0,
    lost: 0,
    written: 0
  }
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
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
    this.#storing ??= this.#storeHead()
  }

  append(entry: AuditEntry): void {
    if (this.#waiting.length >= maxWaiting) {
      this.#status.lost++
      this.#lostNow++
    } else this.#add(entry.kind, membersOf(entry), entry.at)
  }

  /** @throws LedgerUnavailable while it cannot be written */
  check(): void {
    const { failing } = this.#status
    if (failing !== undefined) throw new LedgerUnavailable(failing.reason)
  }

  async commit(entry: AuditEntry): Promise<void> {
    const { failing } = this.#status
    if (failing !== undefined) {
      this.append(entry)
      throw new LedgerUnavailable(failing.reason)
    }
    const done = Promise.withResolvers<void>()
    this.#add(entry.kind, membersOf(entry), entry.at, done)
    void this.#write()
    await done.promise
  }

  /** Writes what waits, as far as it can be written. */
  async close(): Promise<void> {
    await this.#writing
    if (this.#isOpen) this.#add('closed', {})
    await this.#write()
    await this.#storing
    clearTimeout(this.#timer)
    clearTimeout(this.#headTimer)
    await this.#file?.close().catch(() => {})
    this.#file = undefined
  }

  #add(
    kind: string,
    members: Waiting['members'],
    at = Date.now(),
    done?: PromiseWithResolvers<void>
  ): void {
    this.#waiting.push({ at, kind, members, ...(done && { done }) })
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
        this.#fail(error as Error, batch)
        return
      }
      for (const { done } of batch) done?.resolve()
      this.#recover()
      this.#storing ??= this.#storeHead()
    }
  }

  get #isOpen(): boolean {
    return typeof this.#options.to === 'string' ? this.#file !== undefined : this.#chain !== ''
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
    const members = { pid: process.pid, others, ...(pruned.length > 0 && { pruned }) }
    try {
      await this.#put([{ at: Date.now(), kind: 'opened', members }])
    } catch (error) {
      // Each try would leave a file behind.
      if (typeof to === 'string') await unlink(join(to, fileOf(chain))).catch(() => {})
      throw error
    }
    if (pruned.length > 0) void this.#heads?.remove(pruned).catch(() => {})
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const lost = this.#lostNow
    const entries = [...batch]
    if (lost > 0) entries.push({ at: Date.now(), kind: 'lost', members: { count: lost } })
    await this.#put(entries)
    if (batch.some(({ done }) => done !== undefined)) await this.#file?.datasync()
    this.#lostNow -= lost
    if (this.#bytes >= this.#options.maxFileBytes || Date.now() >= this.#endAt) await this.#end()
  }

  async #put(entries: readonly Waiting[]): Promise<void> {
    const { to } = this.#options
    const lines = this.#lines(entries)
    if (this.#file !== undefined) this.#bytes += await writeAll(this.#file, lines)
    else if (typeof to !== 'string') to(lines)
    this.#status.written += entries.length
  }

  /** The next batch begins another file. */
  async #end(): Promise<void> {
    if (this.#file === undefined) return
    await this.#put([{ at: Date.now(), kind: 'closed', members: {} }])
    await this.#storing
    await this.#storeHead()
    await this.#file.close()
    this.#file = undefined
  }

  /** A batch that failed is written again, to a new file; what the old one got of it stays there. */
  #fail(error: Error, batch: readonly Waiting[]): void {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code ?? message
    for (const { done } of batch) done?.reject(new LedgerUnavailable(reason))
    this.#waiting.unshift(...batch.map(({ at, kind, members }) => ({ at, kind, members })))
    this.#closeFile()
    this.#writeAfter(retryMs)
    if (this.#status.failing !== undefined) return
    this.#status.failing = { reason, since: Date.now() }
    this.#options.log.error(
      { event: 'audit.unwritable', err: error },
      'the audit ledger cannot be written: acts of operators are refused, other entries wait'
    )
  }

  #closeFile(): void {
    this.#file?.close().catch(() => {})
    this.#file = undefined
  }

  #recover(): void {
    if (this.#status.failing === undefined) return
    this.#status.failing = undefined
    const { lost } = this.#status
    this.#options.log.info({ event: 'audit.writable', lost }, 'the audit ledger is written again')
  }

  async #storeHead(): Promise<void> {
    if (this.#heads === undefined) return
    const [chain, mac] = [this.#chain, this.#mac]
    try {
      await this.#heads.set(chain, mac)
      this.#status.headFailing = undefined
    } catch (error) {
      this.#status.headFailing = (error as Error).message
    }
    this.#storing = undefined
    const isLast = this.#status.headFailing === undefined && mac === this.#mac
    if (!isLast) this.#headTimer ??= setTimeout(() => this.#storeAgain(), retryMs).unref()
  }

  #storeAgain(): void {
    this.#headTimer = undefined
    this.#storing ??= this.#storeHead()
  }

  #lines(entries: readonly Waiting[]): string {
    let lines = ''
    for (const { at, kind, members } of entries) {
      const head = { seq: ++this.#seq, chain: this.#chain, at: new Date(at).toISOString(), kind }
      const json = escapeInJson(JSON.stringify({ ...head, ...members }))
      const { text, mac } = signed(json, this.#mac, this.#options.key)
      this.#mac = mac
      lines += `${text}\n`
    }
    return lines
  }
}
