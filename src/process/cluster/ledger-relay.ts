/** The audit ledger of workers: entries go to the primary, the only writer of the machine. */
import type { Worker } from 'node:cluster'
import { type AuditEntry, type Ledger, LedgerUnavailable } from '../../observability/audit/entry.ts'
import type { OpenLedger } from '../../observability/audit/ledger.ts'
import type { Audited, CallWorker } from './rpc.ts'

/** A worker's message to the primary. */
interface AuditMessage {
  readonly audit: {
    readonly id: number
    readonly entries: readonly AuditEntry[]
    /** Entries that found no place since the message before. */
    readonly lost: number
    readonly isCommit: boolean
  }
}

const batchMs = 50
const maxWaiting = 10_000
const maxAtOnce = 1000
/** Messages that the primary has not taken yet: more would fill its memory. */
const maxUnderWay = 4
const commitMs = 6000

/** In a worker. */
export class LedgerRelay implements Ledger {
  #waiting: AuditEntry[] = []
  #lost = 0
  #lastId = 0
  #timer: NodeJS.Timeout | undefined
  readonly #underWay = new Set<number>()
  readonly #commits = new Map<number, PromiseWithResolvers<number>>()
  #onIdle: (() => void) | undefined

  readonly append = (entry: AuditEntry): void => {
    if (this.#waiting.length >= maxWaiting) {
      this.#lost++
      return
    }
    this.#waiting.push(entry.at === undefined ? { ...entry, at: Date.now() } : entry)
    this.#timer ??= setTimeout(this.#sendBatch, batchMs)
  }

  readonly commit = async (entry: AuditEntry): Promise<number> => {
    const commit = Promise.withResolvers<number>()
    const id = this.#send([entry], true)
    this.#commits.set(id, commit)
    const timer = setTimeout(() => {
      commit.reject(new LedgerUnavailable(`the primary did not answer within ${commitMs} ms`))
    }, commitMs)
    try {
      return await commit.promise
    } finally {
      clearTimeout(timer)
      this.#commits.delete(id)
    }
  }

  /** Called with each reply of the primary. */
  onReply({ id, seq, reason }: Audited): void {
    this.#underWay.delete(id)
    if (seq !== undefined) this.#commits.get(id)?.resolve(seq)
    else if (reason !== undefined) this.#commits.get(id)?.reject(new LedgerUnavailable(reason))
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(this.#sendBatch, batchMs)
    else if (this.#underWay.size === 0) this.#onIdle?.()
  }

  /** Hands all entries to the primary, within a time. */
  async flush(withinMs: number): Promise<void> {
    this.#sendBatch()
    if (this.#underWay.size === 0) return
    const idle = Promise.withResolvers<void>()
    this.#onIdle = idle.resolve
    const timer = setTimeout(idle.resolve, withinMs)
    await idle.promise
    clearTimeout(timer)
  }

  readonly #sendBatch = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#waiting.length > 0 && this.#underWay.size < maxUnderWay) {
      this.#send(this.#waiting.splice(0, maxAtOnce), false)
    }
  }

  #send(entries: readonly AuditEntry[], isCommit: boolean): number {
    const id = ++this.#lastId
    const lost = this.#lost
    this.#lost = 0
    this.#underWay.add(id)
    const message: AuditMessage = { audit: { id, entries, lost, isCommit } }
    // Without a callback, a message that cannot be sent is an `error` of the process.
    if (process.connected) process.send?.(message, undefined, undefined, () => {})
    return id
  }
}

export type WorkersLedger = Pick<OpenLedger, 'append' | 'commit' | 'lose'>

/** In the primary: takes the entries of a worker. */
export function serveLedger(
  worker: Worker,
  index: number,
  ledger: WorkersLedger,
  call: CallWorker
): void {
  const reply = (audited: Audited) => void call('audited', audited).catch(() => {})
  worker.on('message', (message: Partial<AuditMessage> | string) => {
    if (typeof message !== 'object' || message.audit === undefined) return
    const { id, entries, lost, isCommit } = message.audit
    if (lost > 0) ledger.lose(lost, { worker: index })
    const [entry] = entries
    if (isCommit && entry !== undefined) {
      ledger.commit(entry).then(
        seq => reply({ id, seq }),
        (error: Error) => reply({ id, reason: error.message })
      )
      return
    }
    for (const each of entries) ledger.append(each)
    reply({ id })
  })
}
