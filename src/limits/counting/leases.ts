/**
 * Leases: shares of limits that this process uses without asking the shared counters, so that most
 * requests cost no round trip.
 */
import { exceededFor, ExceededKeys } from './exceeded-keys.ts'
import { isPast, type Lease, roundingMs } from './lease.ts'
import { replicasOf, type Rule, type Tally, type TallyEntry, type Verdict } from './rules.ts'
import { forgetSubject } from './forget-subject.ts'

export interface Leases {
  /** The verdicts, if this process can decide by itself; undefined: call `acquire`. */
  readonly tryLocally: (
    rules: readonly Rule[],
    keys: readonly string[]
  ) => readonly Verdict[] | undefined
  /**
   * Counts the request in the tally, and takes leases on the rest.
   * @throws where the tally cannot be asked
   */
  readonly acquire: (rules: readonly Rule[], keys: readonly string[]) => Promise<readonly Verdict[]>
  /**
   * The current state of the limits, without counting.
   * @throws where the tally cannot be asked
   */
  readonly inspect: (rules: readonly Rule[], keys: readonly string[]) => Promise<readonly Verdict[]>
  /** Forgets what this process knows of keys that begin with `subject`. */
  readonly forget: (subject: string) => void
  readonly close: () => Promise<void>
}

export interface LeaseOptions {
  readonly tally: Tally
  /** The number of processes that share the counters, for rules that do not give it. */
  readonly replicas?: () => number
  /** Whether it is certain that no other process shares the counters. */
  readonly isAlone?: () => boolean
  readonly now?: () => number
}

/** The part of a limit's rest that all replicas together may use before they report it. */
const share = 0.01
/** A process that is alone cannot exceed a limit, however large its leases. */
const shareAlone = 0.1
const leaseMs = 1000
const maxKeys = 100_000
const maxReported = 200

/** A step of the wall clock would prolong refusals and leases by as much. */
const ticks = () => Math.floor(performance.now())

/** The verdict of a refused request's other limits, which were not asked. */
const allowed: Verdict = { exceeded: false, remaining: 0, resetMs: 0, retryMs: 0 }

/**
 * Exact in one process, since passed requests count here at once. Several processes together exceed
 * a limit by at most 1 %: each leases at most its part of that, and less near the limit. In the two
 * seconds in which a second process starts beside a lone one, it may be 10 %.
 */
export function createLeases(options: LeaseOptions): Leases {
  return new LocalLeases(options)
}

/** Around a question to the tally. */
interface Times {
  readonly asked: number
  readonly answered: number
}

class LocalLeases implements Leases {
  readonly #tally: Tally
  readonly #replicas: () => number
  readonly #isAlone: () => boolean
  readonly #now: () => number
  readonly #leases = new Map<string, Lease>()
  readonly #exceeded = new ExceededKeys()
  /** Running `acquire` calls by key: the rest is only certain while there is one. */
  readonly #acquiring = new Map<string, number>()
  readonly #timer: NodeJS.Timeout

  constructor({ tally, replicas = () => 1, isAlone = () => false, now = ticks }: LeaseOptions) {
    this.#tally = tally
    this.#replicas = replicas
    this.#isAlone = isAlone
    this.#now = now
    this.#timer = setInterval(() => void this.#reportExpired(now()), leaseMs)
    this.#timer.unref()
  }

  tryLocally(rules: readonly Rule[], keys: readonly string[]): readonly Verdict[] | undefined {
    const time = this.#now()
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index] as string
      const rule = rules[index] as Rule
      const waitMs = this.#exceeded.waitMs(key, rule, time)
      if (waitMs > 0 && rule.enforced) {
        return rules.map((_, other) => (other === index ? exceededFor(waitMs) : allowed))
      }
      if (waitMs > 0) continue
      const lease = this.#leases.get(key)
      if (lease === undefined || lease.left < 1 || time >= lease.expiresAt || lease.rule !== rule) {
        return undefined
      }
    }
    return keys.map((key, index) => this.#useLease(key, rules[index] as Rule, time))
  }

  #useLease(key: string, rule: Rule, time: number): Verdict {
    const waitMs = this.#exceeded.waitMs(key, rule, time)
    if (waitMs > 0) return exceededFor(waitMs)
    const lease = this.#leases.get(key) as Lease
    lease.left--
    lease.unreported++
    lease.remaining--
    return {
      exceeded: false,
      remaining: lease.remaining,
      resetMs: lease.resetAt - time,
      retryMs: 0
    }
  }

  async acquire(rules: readonly Rule[], keys: readonly string[]): Promise<readonly Verdict[]> {
    const asked = this.#now()
    const entries = rules.map((rule, index) => this.#entryOf(rule, keys[index] as string))
    for (const key of keys) this.#acquiring.set(key, (this.#acquiring.get(key) ?? 0) + 1)
    try {
      const verdicts = await this.#consume(entries)
      const times = { asked, answered: this.#now() }
      return verdicts.map((verdict, index) =>
        this.#note(entries[index] as TallyEntry, verdict, times)
      )
    } finally {
      for (const key of keys) {
        const left = (this.#acquiring.get(key) ?? 1) - 1
        if (left > 0) this.#acquiring.set(key, left)
        else this.#acquiring.delete(key)
      }
    }
  }

  #entryOf(rule: Rule, key: string): TallyEntry {
    const lease = this.#leases.get(key)
    if (lease === undefined) return { rule, key, unreported: 0 }
    this.#dropPast(lease)
    const unreported = Math.max(0, lease.unreported)
    lease.unreported -= unreported
    lease.left = 0
    return { rule, key, unreported }
  }

  /** Requests of a fixed window that has ended would count in the next one. */
  #dropPast(lease: Lease): void {
    if (isPast(lease, this.#now())) lease.unreported = 0
  }

  async #consume(entries: readonly TallyEntry[]): Promise<readonly Verdict[]> {
    try {
      return await this.#tally.consume(entries)
    } catch (error) {
      // Nothing was counted, so the next call has to report it.
      for (const { key, unreported } of entries) {
        const lease = this.#leases.get(key)
        if (lease !== undefined) lease.unreported += unreported
      }
      throw error
    }
  }

  #note(entry: TallyEntry, verdict: Verdict, times: Times): Verdict {
    const { answered: time } = times
    if (verdict.exceeded) {
      return { ...verdict, isNews: this.#exceeded.add(entry, verdict, time) }
    }
    if (this.#acquiring.get(entry.key) === 1) this.#lease(entry, verdict, times)
    return verdict
  }

  #lease({ rule, key }: TallyEntry, { remaining, resetMs }: Verdict, times: Times): void {
    const { asked, answered } = times
    const former = this.#leases.get(key)
    const part = this.#isAlone() ? shareAlone : share / replicasOf(rule, this.#replicas)
    const left = Math.floor(remaining * part)
    if (left <= 0) {
      if (former?.unreported === 0) this.#leases.delete(key)
      return
    }
    if (former === undefined && this.#leases.size >= maxKeys) return
    // A request behind the end of a fixed window belongs to the next one, so the time that the
    // answer took does not prolong a lease.
    const endsAt = rule.kind === 'fixed' ? asked + resetMs - roundingMs : answered + resetMs
    const expiresAt = Math.min(answered + leaseMs, endsAt)
    // An answer that was overtaken by one of the next window does not bring the former one back.
    const resetAt = Math.max(former?.rule === rule ? former.resetAt : 0, answered + resetMs)
    this.#leases.set(key, {
      left,
      unreported: former?.unreported ?? 0,
      expiresAt,
      remaining,
      resetAt,
      rule
    })
  }

  /** Ends leases that have expired by `time`, and reports the requests that passed by them. */
  async #reportExpired(time: number): Promise<void> {
    const entries: TallyEntry[] = []
    for (const [key, lease] of this.#leases) {
      if (time >= lease.expiresAt) this.#end(key, lease, entries)
    }
    await this.#report(entries)
  }

  #end(key: string, lease: Lease, entries: TallyEntry[]): void {
    this.#dropPast(lease)
    const { rule, unreported } = lease
    this.#leases.delete(key)
    if (unreported > 0) entries.push({ rule, key, unreported })
  }

  async #report(entries: readonly TallyEntry[]): Promise<void> {
    for (let index = 0; index < entries.length; index += maxReported) {
      await this.#tally.report(entries.slice(index, index + maxReported)).catch(() => {})
    }
  }

  async inspect(rules: readonly Rule[], keys: readonly string[]): Promise<readonly Verdict[]> {
    const verdicts = await this.#tally.report(
      rules.map((rule, index) => ({ rule, key: keys[index] as string, unreported: 0 }))
    )
    return verdicts.map((verdict, index) => {
      const lease = this.#leases.get(keys[index] as string)
      const unreported = lease === undefined || isPast(lease, this.#now()) ? 0 : lease.unreported
      return { ...verdict, remaining: Math.max(0, verdict.remaining - unreported) }
    })
  }

  forget(subject: string): void {
    forgetSubject(this.#leases, subject)
    this.#exceeded.forget(subject)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reportExpired(Infinity)
  }
}
