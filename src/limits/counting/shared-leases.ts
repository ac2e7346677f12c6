/**
 * The leases of a machine: its processes share one for each key and borrow parts of it, so that the
 * shared counters are asked as often as by one process.
 */
import { type Lease, lentOf } from './lease.ts'
import { type LeaseOptions, LocalLeases } from './leases.ts'
import { type Grant, isRefused, type Rule, type TallyEntry, type Verdict } from './rules.ts'

interface Options extends LeaseOptions {
  /** Processes that borrow. */
  readonly borrowers: number
  /** Called when a process has to give back what is left of its part of a key. */
  readonly recall: (borrower: number, key: string) => void
}

/** A process that does not give its part back by then is not waited for. */
const recallMs = 50
const recallAgainMs = 1000

export const noGrant: Grant = { requests: 0, ms: 0 }

/**
 * A part that was lent counts as used until its use is reported, so one machine is exact, and
 * several exceed a limit no further than single processes do. Only a process that does not give
 * back its part in time, because its event loop is blocked, can exceed it, by that part.
 */
export class SharedLeases extends LocalLeases {
  readonly #recall: Options['recall']
  readonly #borrowers: number
  /** By key. */
  readonly #recalls = new Map<string, PromiseWithResolvers<void>>()

  constructor(options: Options) {
    super(options)
    this.#recall = options.recall
    this.#borrowers = options.borrowers
  }

  /**
   * Counts a request of a borrower, which reports with it what it used of its former parts.
   * @returns at once where the lease suffices
   * @throws where the tally cannot be asked
   */
  take(
    borrower: number,
    entries: readonly TallyEntry[]
  ): readonly Verdict[] | Promise<readonly Verdict[]> {
    this.settle(borrower, entries)
    const rules = entries.map(({ rule }) => rule)
    const keys = entries.map(({ key }) => key)
    const verdicts = this.tryLocally(rules, keys)
    if (verdicts !== undefined) return this.#withGrants(borrower, entries, verdicts)
    return this.#ask(borrower, entries, rules, keys)
  }

  async #ask(
    borrower: number,
    entries: readonly TallyEntry[],
    rules: readonly Rule[],
    keys: readonly string[]
  ): Promise<readonly Verdict[]> {
    // A caller that was away may not come again while the lease lasts: nothing is lent then.
    const areActive = keys.map(key => this.leases.has(key))
    const lacking = keys.filter(key => this.#isAtEnd(key))
    if (lacking.length > 0) await Promise.all(lacking.map(key => this.#recallAll(key)))
    return this.#withGrants(borrower, entries, await this.acquire(rules, keys), areActive)
  }

  /** Whether one more request and what is lent could be more than is left. */
  #isAtEnd(key: string): boolean {
    const lease = this.leases.get(key)
    const lent = lentOf(lease)
    const asking = this.acquiring.get(key) ?? 0
    return lease !== undefined && lent > 0 && lease.remaining - lent <= asking
  }

  /** @returns when all parts of a key were given back, or after a time */
  #recallAll(key: string): Promise<void> {
    const running = this.#recalls.get(key)
    if (running !== undefined) return running.promise
    const recall = Promise.withResolvers<void>()
    this.#recalls.set(key, recall)
    setTimeout(() => recall.resolve(), recallMs)
    setTimeout(() => this.#endRecall(key, recall), recallAgainMs).unref()
    for (const borrower of this.leases.get(key)?.lent?.keys() ?? []) this.#recall(borrower, key)
    return recall.promise
  }

  #endRecall(key: string, recall = this.#recalls.get(key)): void {
    recall?.resolve()
    if (this.#recalls.get(key) === recall) this.#recalls.delete(key)
  }

  #withGrants(
    borrower: number,
    entries: readonly TallyEntry[],
    verdicts: readonly Verdict[],
    areActive?: readonly boolean[]
  ): readonly Verdict[] {
    if (isRefused(entries, verdicts)) return verdicts
    return verdicts.map((verdict, index) => {
      if (verdict.exceeded || areActive?.[index] === false) return verdict
      return { ...verdict, grant: this.#lend(borrower, entries[index] as TallyEntry) }
    })
  }

  #lend(borrower: number, { rule, key }: TallyEntry): Grant {
    const lease = this.leases.get(key)
    if (lease === undefined || lease.left < 1 || lease.rule !== rule) return noGrant
    const ms = lease.expiresAt - this.now()
    if (ms <= 0) return noGrant
    // Parallel calls of a process would otherwise use up the lease, so that all others ask Redis.
    const lent = lease.lent?.get(borrower) ?? 0
    const requests = Math.min(lease.left, Math.ceil(lease.size / this.#borrowers) - lent)
    if (requests < 1) return noGrant
    lease.left -= requests
    lease.lent ??= new Map()
    lease.lent.set(borrower, lent + requests)
    return { requests, ms }
  }

  /** Takes account of what a borrower used of its parts. */
  settle(borrower: number, entries: readonly TallyEntry[]): void {
    for (const { rule, key, unreported, unused = 0 } of entries) {
      if (unreported === 0 && unused === 0) continue
      const lease = this.leases.get(key)
      if (lease === undefined) {
        if (unreported > 0) this.#remember(rule, key, unreported)
        continue
      }
      lease.unreported += unreported
      lease.remaining -= unreported
      const lent = lease.lent?.get(borrower) ?? 0
      const returned = Math.min(unused, Math.max(0, lent - unreported))
      if (!lease.isAsked) lease.left += returned
      const rest = lent - Math.max(0, unreported) - returned
      if (rest > 0) lease.lent?.set(borrower, rest)
      else this.#endLoan(key, lease, borrower)
    }
  }

  #endLoan(key: string, lease: Lease, borrower: number): void {
    lease.lent?.delete(borrower)
    if (lentOf(lease) === 0) this.#endRecall(key)
  }

  /** Requests whose lease is forgotten; they are reported with the next question, or soon. */
  #remember(rule: Rule, key: string, unreported: number): void {
    this.leases.set(key, {
      size: 0,
      left: 0,
      unreported,
      isAsked: true,
      isBorrowed: false,
      lent: undefined,
      expiresAt: 0,
      remaining: 0,
      resetAt: 0,
      rule
    })
  }

  /** Counts as used all that a process had borrowed that is gone. */
  drop(borrower: number): void {
    for (const [key, lease] of this.leases) {
      const lent = lease.lent?.get(borrower)
      if (lent === undefined) continue
      lease.unreported += lent
      lease.remaining -= lent
      this.#endLoan(key, lease, borrower)
    }
  }

  protected override onVerdict(key: string, remaining: number, left: number): void {
    const lease = this.leases.get(key)
    if (lentOf(lease) === 0 || lease === undefined) return
    lease.remaining = Math.min(lease.remaining, remaining)
    if (left < 0) void this.#recallAll(key)
  }
}
