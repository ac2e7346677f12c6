/**
 * The audit ledger of a process: chains of signed lines, each of which holds on to the one before.
 */
import type { KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import { Chain, type Place } from './chain.ts'
import { type AuditEntry, type Fact, factOf } from './line.ts'

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

export class Ledger {
  /** Why it cannot be written; since when, in milliseconds since the epoch. */
  failing: { readonly reason: string; readonly since: number } | undefined
  /** Why the last head is not stored. */
  headFailing: string | undefined
  /** Entries that found no place. */
  lost = 0
  readonly #options: Options
  readonly #waiting: Fact[] = []
  /** Whether somebody waits until all of it is on disk. */
  #mustSync = false
  /** Undefined before its first line, and after its last. */
  #chain: Chain | undefined
  /** The chain that was written to last. */
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

  /** The next line begins another one. */
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
