/** Entries that wait to be written: bounded; what finds no place is counted. */
import type { AuditEntry, LedgerUnavailable } from './entry.ts'

interface Waiter {
  readonly resolve: (seq: number) => void
  readonly reject: (error: LedgerUnavailable) => void
}

export interface Queued {
  readonly entry: AuditEntry
  /** Of a commit. */
  readonly waiter: Waiter | undefined
}

type LostDetail = Readonly<Record<string, string | number>>

const maxEntries = 20_000

export class LedgerQueue {
  #entries: Queued[] = []
  #lost = new Map<string, { count: number; readonly detail: LostDetail }>()
  lostInAll = 0

  get size(): number {
    return this.#entries.length
  }

  get hasLost(): boolean {
    return this.#lost.size > 0
  }

  /** @returns whether there was a place */
  push(entry: AuditEntry, waiter?: Waiter): boolean {
    if (this.#entries.length >= maxEntries) {
      this.lose(1, {})
      return false
    }
    this.#entries.push({ entry: { at: Date.now(), ...entry }, waiter })
    return true
  }

  lose(count: number, detail: LostDetail): void {
    this.lostInAll += count
    const key = JSON.stringify(detail)
    const lost = this.#lost.get(key)
    if (lost === undefined) this.#lost.set(key, { count, detail })
    else lost.count += count
  }

  takeLost(use: (count: number, detail: LostDetail) => void): void {
    for (const { count, detail } of this.#lost.values()) use(count, detail)
    this.#lost.clear()
  }

  take(count: number): Queued[] {
    if (this.#entries.length <= count) {
      const all = this.#entries
      this.#entries = []
      return all
    }
    return this.#entries.splice(0, count)
  }

  /** Commits that wait are refused; their lines are written once that is possible. */
  refuseCommits(error: LedgerUnavailable): void {
    for (const { waiter } of this.#entries) waiter?.reject(error)
  }
}
