/** How much of each limit its callers use, by hour: what every caller would need at most, kept small. */
import { createRequiredLimit, type RequiredLimit } from './required-limit.ts'
import type { Leases } from '../counting/leases.ts'
import type { Rule, Verdict } from '../counting/rules.ts'
import {
  addTop,
  createBin,
  type HourUsage,
  hourMs,
  type LimitUsage,
  type OpenBin,
  binToJson
} from './hours.ts'

export interface UsageRecord {
  /** Each request, whether or not it passes. */
  readonly count: (rules: readonly Rule[], keys: readonly string[]) => void
  readonly judge: (
    rules: readonly Rule[],
    keys: readonly string[],
    verdicts: readonly Verdict[]
  ) => void
  /** An attempt to sign in, as the shared counters have it: `LIMIT:WHOM`, and how many there are now. */
  readonly attempt: (key: string, windowMs: number, current: number) => void
  /** Of this process, the oldest first; hours in which nothing came too. */
  readonly hours: () => readonly HourUsage[]
  readonly close: () => void
}

interface Options {
  readonly keepMs: number
  /** How many processes count together. */
  readonly processes?: () => number
  readonly now?: () => number
}

interface Followed {
  readonly demand: RequiredLimit
  hour: number
  peak: number
  most: number
  at: number
  refused: number
}

interface OfLimit {
  readonly about: Pick<LimitUsage, 'limit' | 'kind' | 'windowMs' | 'per'>
  readonly followed: Map<string, Followed>
  readonly bins: Map<number, OpenBin>
}

/** Of one limit: clients choose the keys. */
const maxKeys = 50_000
const sweepMs = 60_000

export function createUsageRecord({
  keepMs,
  processes = () => 1,
  now = Date.now
}: Options): UsageRecord {
  const startedAt = now()
  let hour = Math.floor(startedAt / hourMs)
  const limits = new Map<string, OfLimit>()
  /** Rules are made anew with each reload. */
  const ofRules = new WeakMap<Rule, OfLimit>()
  const timer = setInterval(sweep, sweepMs).unref()

  function adopt(rule: Rule): OfLimit {
    const { name: limit, kind, windowMs, max } = rule
    const found = ofAbout({ limit, kind, windowMs, per: kind === 'bucket' ? max : 0 })
    ofRules.set(rule, found)
    return found
  }

  function ofAbout(about: OfLimit['about']): OfLimit {
    const name = `${about.limit} ${about.kind} ${about.windowMs} ${about.per}`
    let found = limits.get(name)
    if (found === undefined)
      limits.set(name, (found = { about, followed: new Map(), bins: new Map() }))
    return found
  }

  function binOf({ bins }: OfLimit, at: number): OpenBin {
    let found = bins.get(at)
    if (found === undefined) bins.set(at, (found = createBin()))
    return found
  }

  function follow(of: OfLimit, key: string, demand: RequiredLimit, time: number): Followed {
    const { followed } = of
    if (followed.size >= maxKeys) {
      const [oldest, gone] = followed.entries().next().value as [string, Followed]
      // Its window was not over: what it would have needed is not known.
      if (!gone.demand.isOver(time)) binOf(of, hour).cut = true
      fold(of, oldest, gone)
      followed.delete(oldest)
    }
    const made = { demand, hour, peak: 0, most: 0, at: 0, refused: 0 }
    followed.set(key, made)
    return made
  }

  function fold(
    of: OfLimit,
    key: string,
    { hour: at, peak, most, at: peakAt, refused }: Followed
  ): void {
    if (peak > 0) addTop(binOf(of, at), [key, peak, most, peakAt, refused])
  }

  function turn(of: OfLimit, key: string, one: Followed): void {
    fold(of, key, one)
    one.hour = hour
    one.peak = one.most = one.refused = 0
  }

  function sweep(): void {
    const time = now()
    hour = Math.floor(time / hourMs)
    for (const [name, of] of limits) {
      for (const [key, one] of of.followed) {
        if (one.hour === hour) continue
        turn(of, key, one)
        if (one.demand.isOver(time)) of.followed.delete(key)
      }
      for (const at of of.bins.keys()) if ((at + 1) * hourMs <= time - keepMs) of.bins.delete(at)
      if (of.followed.size === 0 && of.bins.size === 0) limits.delete(name)
    }
  }

  function note(
    of: OfLimit,
    key: string,
    one: Followed,
    needed: number,
    most: number,
    time: number
  ): void {
    if (one.hour !== hour) turn(of, key, one)
    if (most > one.most) one.most = most
    if (needed > one.peak) {
      one.peak = needed
      one.at = time
    }
    binOf(of, hour).requests++
  }

  function timeNow(): number {
    const time = now()
    if (time >= (hour + 1) * hourMs) hour = Math.floor(time / hourMs)
    return time
  }

  return {
    count: (rules, keys) => {
      const time = timeNow()
      for (let index = 0; index < rules.length; index++) {
        const rule = rules[index] as Rule
        const key = keys[index] as string
        const of = ofRules.get(rule) ?? adopt(rule)
        const one =
          of.followed.get(key) ??
          follow(of, key, createRequiredLimit(rule, rule.replicas ?? processes()), time)
        const needed = one.demand.hit(time)
        note(of, key, one, needed, one.demand.most(), time)
      }
    },
    judge: (rules, keys, verdicts) => {
      for (let index = 0; index < verdicts.length; index++) {
        if (verdicts[index]?.exceeded !== true) continue
        const of = ofRules.get(rules[index] as Rule)
        const one = of?.followed.get(keys[index] as string)
        if (of === undefined || one === undefined) continue
        one.refused++
        binOf(of, hour).refused++
      }
    },
    attempt: (key, windowMs, current) => {
      const time = timeNow()
      const of = ofAbout({
        limit: key.slice(0, key.indexOf(':')),
        kind: 'attempts',
        windowMs,
        per: 0
      })
      const one = of.followed.get(key) ?? follow(of, key, counted(time + windowMs), time)
      note(of, key, one, current, current, time)
    },
    hours: () => {
      sweep()
      const time = timeNow()
      const first = Math.max(Math.floor(startedAt / hourMs), Math.floor((time - keepMs) / hourMs))
      return Array.from({ length: hour - first + 1 }, (_, index): HourUsage => {
        const at = first + index
        return {
          hour: at,
          from: Math.max(startedAt, at * hourMs),
          until: Math.min(time, (at + 1) * hourMs),
          processes: processes(),
          limits: [...limits.values()].flatMap(of => usedIn(of, at))
        }
      })
    },
    close: () => clearInterval(timer)
  }
}

/** With what is not folded yet. */
function usedIn({ about, followed, bins }: OfLimit, at: number): LimitUsage[] {
  const bin = createBin(bins.get(at))
  for (const [key, one] of followed)
    if (one.hour === at && one.peak > 0) addTop(bin, [key, one.peak, one.most, one.at, one.refused])
  return bin.requests === 0 && bin.top.length === 0 ? [] : [{ ...about, ...binToJson(bin) }]
}

/** What others count: only when it ends is known here. */
function counted(end: number): RequiredLimit {
  return {
    hit: () => 0,
    most: () => 0,
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
