/** Records each limit's use by hour: the greatest need of every caller, in a compact form. */
import { createRequiredLimit, type RequiredLimit } from './required-limit.ts'
import type { Leases } from '../counting/leases.ts'
import { replicasOf, type Rule, type Verdict } from '../counting/rules.ts'
import {
  addTop,
  binToJson,
  createBin,
  type HourUsage,
  hourMs,
  type LimitUsage,
  type OpenBin
} from './hours.ts'

export interface UsageRecord {
  /** Counts each request, whether or not it passes. */
  readonly count: (rules: readonly Rule[], keys: readonly string[]) => void
  /** Counts the refusals among `verdicts`. */
  readonly judge: (
    rules: readonly Rule[],
    keys: readonly string[],
    verdicts: readonly Verdict[]
  ) => void
  /**
   * Counts a sign-in attempt by its key `LIMIT:CALLER` and the shared counters' number. Keys of no
   * limit, as of wrong captchas, are passed over.
   */
  readonly attempt: (key: string, windowMs: number, current: number) => void
  /** This process' hours, the oldest first, including empty ones. */
  readonly hours: () => readonly HourUsage[]
  readonly close: () => void
}

interface Options {
  readonly keepMs: number
  /** The number of processes that count together. */
  readonly processes?: () => number
  readonly now?: () => number
}

/** The time of the current call, shared by all limits of a record. */
interface Clock {
  time: number
  /** Whole hours since 1970. */
  hour: number
}

/** A caller of one limit, and its need in its hour. */
interface Caller {
  readonly required: RequiredLimit
  hour: number
  peak: number
  upperBound: number
  peakAt: number
  refused: number
}

type About = Pick<LimitUsage, 'limit' | 'kind' | 'windowMs' | 'per'>

/** Of one limit. */
const maxCallers = 50_000
const sweepMs = 60_000
/** Names of limits have no blank. Other keys have one before any colon that a client typed. */
const limitKey = /^[^ :]+(?=:)/

export function createUsageRecord(options: Options): UsageRecord {
  return new HourlyRecord(options)
}

class HourlyRecord implements UsageRecord {
  readonly #keepMs: number
  readonly #processes: () => number
  readonly #now: () => number
  readonly #startedAt: number
  readonly #clock: Clock
  readonly #limits = new Map<string, LimitRecord>()
  /** Weak, since a reload creates new rules. */
  readonly #byRule = new WeakMap<Rule, LimitRecord>()
  readonly #timer: NodeJS.Timeout

  constructor({ keepMs, processes = () => 1, now = Date.now }: Options) {
    this.#keepMs = keepMs
    this.#processes = processes
    this.#now = now
    this.#startedAt = now()
    this.#clock = { time: this.#startedAt, hour: Math.floor(this.#startedAt / hourMs) }
    this.#timer = setInterval(() => this.#sweep(), sweepMs).unref()
  }

  count(rules: readonly Rule[], keys: readonly string[]): void {
    this.#tick()
    for (let index = 0; index < rules.length; index++) {
      const rule = rules[index] as Rule
      const key = keys[index] as string
      const limit = this.#byRule.get(rule) ?? this.#addRule(rule)
      const caller =
        limit.find(key) ??
        limit.follow(key, createRequiredLimit(rule, replicasOf(rule, this.#processes)))
      const needed = caller.required.hit(this.#clock.time)
      limit.note(key, caller, needed, caller.required.upperBound())
    }
  }

  judge(rules: readonly Rule[], keys: readonly string[], verdicts: readonly Verdict[]): void {
    for (let index = 0; index < verdicts.length; index++) {
      if (verdicts[index]?.exceeded === true) {
        this.#byRule.get(rules[index] as Rule)?.noteRefused(keys[index] as string)
      }
    }
  }

  attempt(key: string, windowMs: number, current: number): void {
    const [name] = limitKey.exec(key) ?? []
    if (name === undefined) return
    this.#tick()
    const limit = this.#limitOf({ limit: name, kind: 'attempts', windowMs, per: 0 })
    const caller = limit.find(key) ?? limit.follow(key, countedUntil(this.#clock.time + windowMs))
    limit.note(key, caller, current, current)
  }

  hours(): readonly HourUsage[] {
    this.#sweep()
    const { time, hour } = this.#clock
    const first = Math.max(
      Math.floor(this.#startedAt / hourMs),
      Math.floor((time - this.#keepMs) / hourMs)
    )
    return Array.from({ length: hour - first + 1 }, (_, index): HourUsage => {
      const at = first + index
      return {
        hour: at,
        from: Math.max(this.#startedAt, at * hourMs),
        until: Math.min(time, (at + 1) * hourMs),
        processes: this.#processes(),
        limits: [...this.#limits.values()].flatMap(limit => limit.usageIn(at))
      }
    })
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #addRule(rule: Rule): LimitRecord {
    const { name, kind, windowMs, max } = rule
    const limit = this.#limitOf({ limit: name, kind, windowMs, per: kind === 'bucket' ? max : 0 })
    this.#byRule.set(rule, limit)
    return limit
  }

  #limitOf(about: About): LimitRecord {
    const name = `${about.limit} ${about.kind} ${about.windowMs} ${about.per}`
    let limit = this.#limits.get(name)
    if (limit === undefined) this.#limits.set(name, (limit = new LimitRecord(about, this.#clock)))
    return limit
  }

  #tick(): void {
    const time = this.#now()
    this.#clock.time = time
    if (time >= (this.#clock.hour + 1) * hourMs) this.#clock.hour = Math.floor(time / hourMs)
  }

  #sweep(): void {
    const time = this.#now()
    this.#clock.time = time
    this.#clock.hour = Math.floor(time / hourMs)
    for (const [name, limit] of this.#limits) {
      if (!limit.sweep(time - this.#keepMs)) this.#limits.delete(name)
    }
  }
}

/** The record of one limit, with one kind and window. */
class LimitRecord {
  readonly #about: About
  readonly #clock: Clock
  readonly #callers = new Map<string, Caller>()
  readonly #bins = new Map<number, OpenBin>()

  constructor(about: About, clock: Clock) {
    this.#about = about
    this.#clock = clock
  }

  find(key: string): Caller | undefined {
    return this.#callers.get(key)
  }

  /** Bounded: keys are attacker-controlled, so the oldest gives way. */
  follow(key: string, required: RequiredLimit): Caller {
    if (this.#callers.size >= maxCallers) {
      const [oldest, former] = this.#callers.entries().next().value as [string, Caller]
      // Its window is still open: its need is unknown.
      if (!former.required.isOver(this.#clock.time)) this.#binOf(this.#clock.hour).cut = true
      this.#fold(oldest, former)
      this.#callers.delete(oldest)
    }
    const caller = {
      required,
      hour: this.#clock.hour,
      peak: 0,
      upperBound: 0,
      peakAt: 0,
      refused: 0
    }
    this.#callers.set(key, caller)
    return caller
  }

  note(key: string, caller: Caller, needed: number, upperBound: number): void {
    if (caller.hour !== this.#clock.hour) this.#startHour(key, caller)
    if (upperBound > caller.upperBound) caller.upperBound = upperBound
    if (needed > caller.peak) {
      caller.peak = needed
      caller.peakAt = this.#clock.time
    }
    this.#binOf(this.#clock.hour).requests++
  }

  noteRefused(key: string): void {
    const caller = this.#callers.get(key)
    if (caller === undefined) return
    caller.refused++
    this.#binOf(this.#clock.hour).refused++
  }

  /** @returns whether anything is left */
  sweep(keepFrom: number): boolean {
    for (const [key, caller] of this.#callers) {
      if (caller.hour === this.#clock.hour) continue
      this.#startHour(key, caller)
      if (caller.required.isOver(this.#clock.time)) this.#callers.delete(key)
    }
    for (const hour of this.#bins.keys()) {
      if ((hour + 1) * hourMs <= keepFrom) this.#bins.delete(hour)
    }
    return this.#callers.size > 0 || this.#bins.size > 0
  }

  /** Includes the needs of callers in the running hour, which is in no bin yet. */
  usageIn(hour: number): LimitUsage[] {
    const bin = createBin(this.#bins.get(hour))
    for (const [key, { hour: at, peak, upperBound, peakAt, refused }] of this.#callers) {
      if (at === hour && peak > 0) addTop(bin, [key, peak, upperBound, peakAt, refused])
    }
    if (bin.requests === 0 && bin.top.length === 0) return []
    return [{ ...this.#about, ...binToJson(bin) }]
  }

  #binOf(hour: number): OpenBin {
    let bin = this.#bins.get(hour)
    if (bin === undefined) this.#bins.set(hour, (bin = createBin()))
    return bin
  }

  #startHour(key: string, caller: Caller): void {
    this.#fold(key, caller)
    caller.hour = this.#clock.hour
    caller.peak = caller.upperBound = caller.refused = 0
  }

  #fold(key: string, { hour, peak, upperBound, peakAt, refused }: Caller): void {
    if (peak > 0) addTop(this.#binOf(hour), [key, peak, upperBound, peakAt, refused])
  }
}

/** For attempts, which the shared counters count: only the end of their window matters here. */
function countedUntil(end: number): RequiredLimit {
  return {
    hit: () => 0,
    upperBound: () => 0,
    isOver: now => now >= end
  }
}

/** Leases that keep a record. */
export function recordLeases(leases: Leases, record: UsageRecord): Leases {
  return {
    tryLocally: (rules, keys) => {
      record.count(rules, keys)
      const verdicts = leases.tryLocally(rules, keys)
      if (verdicts !== undefined) record.judge(rules, keys, verdicts)
      return verdicts
    },
    acquire: async (rules, keys) => {
      const verdicts = await leases.acquire(rules, keys)
      record.judge(rules, keys, verdicts)
      return verdicts
    },
    inspect: (rules, keys) => leases.inspect(rules, keys),
    forget: subject => leases.forget(subject),
    close: () => leases.close()
  }
}
