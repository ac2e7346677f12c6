/**
 * The ledger of this machine: takes entries, writes them in batches to its chain, and stores the
 * chain's head. A disk that takes nothing stops nobody but commits: entries wait, then are counted.
 */
import { pruneAbandonedChains } from './abandoned-chains.ts'
import { Chain, type ChainOptions } from './chain.ts'
import { type AuditEntry, type Ledger, LedgerUnavailable } from './entry.ts'
import { formatHead, type HeadStore, readHead } from './head.ts'
import { LedgerQueue, type Queued } from './ledger-queue.ts'

export interface LedgerOptions extends ChainOptions {
  readonly heads: HeadStore
  readonly log: LedgerLog
}

interface LedgerLog {
  readonly info: (fields: object, message: string) => void
  readonly warn: (fields: object, message: string) => void
  readonly error: (fields: object, message: string) => void
}

export interface LedgerStatus {
  /** The reason why nothing can be written, and since when in ms since 1970. */
  readonly failing: { readonly reason: string; readonly since: number } | undefined
  readonly written: number
  readonly lost: number
  readonly waiting: number
  readonly headFailing: string | undefined
  readonly cut: number
}

export interface OpenLedger extends Ledger {
  /** Counts entries that were lost on their way here, such as between processes. */
  readonly lose: (count: number, detail: Readonly<Record<string, string | number>>) => void
  readonly status: () => LedgerStatus
  /** Writes what waits, within a time, and releases the chain. */
  readonly close: () => Promise<void>
}

const batchMs = 50
const retryMs = 1000
const headMs = 1000
const commitMs = 5000
const closeMs = 3000
const maxAtOnce = 512

export function createLedger(options: LedgerOptions): OpenLedger {
  return new BatchingLedger(options)
}

class BatchingLedger implements OpenLedger {
  readonly #options: LedgerOptions
  readonly #queue = new LedgerQueue()
  #chain: Chain | undefined
  #timer: NodeJS.Timeout | undefined
  #wakeAt = 0
  #running: Promise<void> | undefined
  #failing: LedgerStatus['failing']
  #headFailing: string | undefined
  #written = 0
  #cut = 0
  #isClosed = false
  #isUnpruned = false
  /** Whether the stored head was held against the chain as this process found it. */
  #isHeadChecked = false
  #headSeq = 0
  #headAt = -Infinity
  #storing: Promise<void> | undefined

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#wake(0)
  }

  readonly append = (entry: AuditEntry): void => {
    this.#queue.push(entry)
    if (this.#failing === undefined) this.#wake(batchMs)
  }

  readonly commit = async (entry: AuditEntry): Promise<number> => {
    if (this.#isClosed) throw new LedgerUnavailable('the audit ledger is closed')
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    if (!this.#queue.push(entry, { resolve, reject })) {
      throw new LedgerUnavailable(this.#failing?.reason ?? 'too many entries wait')
    }
    const timer = setTimeout(() => {
      reject(new LedgerUnavailable(`the line was not on disk within ${commitMs} ms`))
    }, commitMs)
    this.#wake(0)
    return await promise.finally(() => clearTimeout(timer))
  }

  readonly lose: OpenLedger['lose'] = (count, detail) => this.#queue.lose(count, detail)

  readonly status = (): LedgerStatus => ({
    failing: this.#failing,
    written: this.#written,
    lost: this.#queue.lostInAll,
    waiting: this.#queue.size,
    headFailing: this.#headFailing,
    cut: this.#cut
  })

  readonly close = async (): Promise<void> => {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    await within(closeMs, this.#end())
    await this.#chain?.close().catch(() => {})
  }

  async #end(): Promise<void> {
    await this.#run()
    this.#chain?.addControl('stopped', {})
    await this.#run()
    await this.#storing
    await this.#chain?.sync()
    await this.#storeHead()
  }

  #wake(afterMs: number): void {
    const at = performance.now() + afterMs
    if (this.#isClosed || (this.#timer !== undefined && this.#wakeAt <= at)) return
    clearTimeout(this.#timer)
    this.#wakeAt = at
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#run()
    }, afterMs)
    this.#timer.unref()
  }

  async #run(): Promise<void> {
    while (this.#running !== undefined) await this.#running
    this.#running = this.#writeAll()
    await this.#running
    this.#running = undefined
  }

  async #writeAll(): Promise<void> {
    let taken: readonly Queued[] = []
    try {
      const chain = (this.#chain ??= await this.#open())
      await this.#write(chain)
      this.#report(chain)
      while (this.#queue.size > 0 || this.#queue.hasLost) {
        // Those that wait came before those that found no place: lines are in the order of times.
        if (this.#queue.size === 0) {
          this.#queue.takeLost((count, detail) => chain.addControl('lost', { count, ...detail }))
        }
        taken = this.#queue.take(maxAtOnce)
        await this.#writeBatch(chain, taken)
        taken = []
      }
      if (this.#headSeq < chain.position.seq) await this.#syncHead(chain)
      this.#onSuccess()
    } catch (error) {
      for (const { waiter } of taken) waiter?.reject(new LedgerUnavailable(reasonOf(error)))
      this.#queue.refuseCommits(new LedgerUnavailable(reasonOf(error)))
      this.#onFailure(error)
    }
  }

  async #writeBatch(chain: Chain, batch: readonly Queued[]): Promise<void> {
    const numbers = batch.map(({ entry }) => chain.add(entry))
    await this.#write(chain)
    if (batch.some(({ waiter }) => waiter !== undefined)) await chain.sync()
    batch.forEach(({ waiter }, index) => waiter?.resolve(numbers[index] as number))
    this.#report(chain)
  }

  async #write(chain: Chain): Promise<void> {
    if (await chain.write()) await this.#prune(chain)
  }

  async #prune(chain: Chain): Promise<void> {
    this.#reportUnpruned(await chain.prune())
    // Files of other processes, or a store that is away, do not keep this chain from being written.
    await pruneAbandonedChains(chain, this.#options).catch(() => {})
  }

  /** Once, until old files can be deleted again: they keep nothing from being written. */
  #reportUnpruned(error: unknown): void {
    if (error !== undefined && !this.#isUnpruned) {
      this.#options.log.warn(
        { event: 'audit.unpruned', err: error },
        'old files of the audit ledger cannot be deleted: they stay, and the ledger goes on'
      )
    }
    this.#isUnpruned = error !== undefined
  }

  #report(chain: Chain): void {
    this.#written += chain.takeWritten().length
  }

  async #open(): Promise<Chain> {
    const chain = await Chain.open(this.#options)
    try {
      await within(2 * headMs, this.#checkHead(chain))
      await this.#prune(chain)
      return chain
    } catch (error) {
      await chain.close()
      throw error
    }
  }

  /** At most once a second, and only what the disk has: a crash must not look like a cut tail. */
  async #syncHead(chain: Chain): Promise<void> {
    const dueInMs = this.#headAt + headMs - performance.now()
    if (dueInMs > 0) return this.#wake(dueInMs)
    this.#headAt = performance.now()
    if (await chain.leaveDeletedFile()) {
      const message = 'the file of the audit ledger was deleted while it was written'
      this.#cut++
      this.#options.log.error({ event: 'audit.cut', chain: chain.id }, message)
      await chain.write()
    }
    await chain.sync()
    this.#storing ??= this.#storeHead().finally(() => {
      this.#storing = undefined
    })
  }

  async #storeHead(): Promise<void> {
    const chain = this.#chain
    if (chain === undefined || chain.hasPending) return
    const { keys, heads } = this.#options
    const { position } = chain
    try {
      if (!this.#isHeadChecked) await this.#checkHead(chain)
      await heads.write(chain.id, formatHead(chain.id, position, keys[0]))
      this.#headSeq = position.seq
      this.#headFailing = undefined
      // Lines that were written meanwhile have begun no store of their own.
      if (this.#headSeq < chain.position.seq) this.#wake(0)
    } catch (error) {
      this.#headFailing = reasonOf(error)
      this.#wake(retryMs)
    }
  }

  /** A stored head that the chain does not hold proves that its tail was cut or changed. */
  async #checkHead(chain: Chain): Promise<void> {
    const { keys, heads, log } = this.#options
    const text = await heads.read(chain.id)
    if (this.#isHeadChecked) return
    this.#isHeadChecked = true
    const { opened } = chain
    const head = text === undefined ? undefined : readHead(chain.id, text, keys)
    if (head === undefined) {
      if (opened.seq > 0 || text !== undefined) {
        chain.addControl('head', { state: text === undefined ? 'missing' : 'unreadable' })
      }
      return
    }
    const mac = head.seq > opened.seq ? undefined : await chain.openedMacOf(head.seq)
    if (head.seq <= opened.seq && (mac === undefined || mac === head.mac)) return
    const detail = { state: 'cut', head: head.seq, foundAt: opened.seq }
    chain.addControl('head', detail)
    this.#cut++
    log.error(
      { event: 'audit.cut', chain: chain.id, ...detail },
      'lines at the end of the audit ledger were cut or changed while it was closed'
    )
  }

  #onSuccess(): void {
    if (this.#failing === undefined) return
    const { log, now } = this.#options
    const seconds = Math.round((now() - this.#failing.since) / 1000)
    this.#failing = undefined
    log.info(
      { event: 'audit.writable', seconds, lost: this.#queue.lostInAll },
      'the audit ledger can be written again'
    )
  }

  #onFailure(error: unknown): void {
    const { log, now } = this.#options
    if (this.#failing === undefined) {
      log.error(
        { event: 'audit.unwritable', err: error },
        'the audit ledger cannot be written: traffic goes on, acts of operators are refused'
      )
    }
    this.#failing = { reason: reasonOf(error), since: this.#failing?.since ?? now() }
    this.#wake(retryMs)
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work.catch(() => {}), end])
  clearTimeout(timer)
}
