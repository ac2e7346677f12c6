/** What this process may let pass before it asks the shared counters again; most requests cost no round trip. */
import type { Entry, Rule, Tally, Verdict } from './rules.ts'

interface Lease {
  /** So many more without asking. */
  left: number
  /** Let pass and not told yet. */
  owed: number
  /** Until then it holds. */
  until: number
  remaining: number
  resetAt: number
  readonly rule: Rule
}

export interface Leases {
  /** The verdicts, where this process can give them by itself; otherwise undefined, and `ask` has to be called. */
  readonly peek: (rules: readonly Rule[], keys: readonly string[]) => readonly Verdict[] | undefined
  readonly ask: (rules: readonly Rule[], keys: readonly string[]) => Promise<readonly Verdict[]>
  /** How it stands; counts nothing. @throws where the counters cannot be asked */
  readonly look: (rules: readonly Rule[], keys: readonly string[]) => Promise<readonly Verdict[]>
  /** What this process knows of keys that begin so counts no more. */
  readonly forget: (subject: string) => void
  readonly close: () => Promise<void>
}

interface Options {
  readonly tally: Tally
  /** How many processes share the counters, for rules that do not say it. */
  readonly replicas?: () => number
  /** Whether it is sure that no other does. */
  readonly isAlone?: () => boolean
  readonly now?: () => number
}

/** Of what is left of a limit, this part may be used before the others are told: with all replicas together a hundredth. */
const share = 0.01
/** Whoever is alone exceeds nothing, whatever it keeps. */
const shareAlone = 0.1
const leaseMs = 1000
const maxKeys = 100_000

/** Of the limits of a request that another one refuses: nobody asked. */
const allowed: Verdict = { exceeded: false, remaining: 0, resetMs: 0, retryMs: 0 }

/**
 * Exact in one process, since what was let pass counts here at once. Several processes together exceed a limit by a
 * hundredth of it at most: each keeps at most its part of that, and the nearer the limit the less. In the two
 * seconds in which a second process starts beside one that was alone it may be a tenth.
 */
export function createLeases({
  tally,
  replicas = () => 1,
  isAlone = () => false,
  now = Date.now
}: Options): Leases {
  const leases = new Map<string, Lease>()
  /** Keys that are over a limit, until one more would be allowed. What one rule said does not hold for the one in its place after a reload. */
  const over = new Map<string, { readonly rule: Rule; readonly until: number }>()
  /** How many questions about a key are on their way: what is left is only known when there is none. */
  const asking = new Map<string, number>()
  const timer = setInterval(() => {
    void settle(now())
  }, leaseMs)
  timer.unref()

  function peek(rules: readonly Rule[], keys: readonly string[]): readonly Verdict[] | undefined {
    const time = now()
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index] as string
      const rule = rules[index] as Rule
      const waitMs = waitOf(key, rule, time)
      if (waitMs > 0 && rule.enforced)
        return rules.map((_, other) => (other === index ? overFor(waitMs) : allowed))
      if (waitMs > 0) continue
      const lease = leases.get(key)
      if (lease === undefined || lease.left < 1 || time >= lease.until || lease.rule !== rule)
        return undefined
    }
    return keys.map((key, index) => {
      const waitMs = waitOf(key, rules[index] as Rule, time)
      if (waitMs > 0) return overFor(waitMs)
      const lease = leases.get(key) as Lease
      lease.left--
      lease.owed++
      lease.remaining--
      return {
        exceeded: false,
        remaining: lease.remaining,
        resetMs: lease.resetAt - time,
        retryMs: 0
      }
    })
  }

  function waitOf(key: string, rule: Rule, time: number): number {
    if (over.size === 0) return 0
    const known = over.get(key)
    if (known === undefined) return 0
    if (known.rule === rule && time < known.until) return known.until - time
    over.delete(key)
    return 0
  }

  async function ask(rules: readonly Rule[], keys: readonly string[]): Promise<readonly Verdict[]> {
    const entries = rules.map((rule, index) => entryOf(rule, keys[index] as string))
    for (const key of keys) asking.set(key, (asking.get(key) ?? 0) + 1)
    try {
      const verdicts = await take(entries, true)
      const time = now()
      return verdicts.map((verdict, index) => {
        const entry = entries[index] as Entry
        if (verdict.exceeded) return { ...verdict, isNews: noteOver(entry, verdict, time) }
        if (asking.get(entry.key) === 1) note(entry, verdict, time)
        return verdict
      })
    } finally {
      for (const key of keys) {
        const left = (asking.get(key) ?? 1) - 1
        if (left > 0) asking.set(key, left)
        else asking.delete(key)
      }
    }
  }

  function entryOf(rule: Rule, key: string): Entry {
    const lease = leases.get(key)
    if (lease === undefined) return { rule, key, owed: 0 }
    const { owed } = lease
    lease.owed = lease.left = 0
    return { rule, key, owed }
  }

  async function take(entries: readonly Entry[], wants: boolean): Promise<readonly Verdict[]> {
    try {
      return await tally.take(entries, wants)
    } catch (error) {
      // Still owed.
      for (const { key, owed } of entries) {
        const lease = leases.get(key)
        if (lease !== undefined) lease.owed += owed
      }
      throw error
    }
  }

  /** @returns whether it was not known */
  function noteOver({ rule, key }: Entry, { retryMs }: Verdict, time: number): boolean {
    const known = waitOf(key, rule, time) > 0
    // Clients choose the keys.
    if (over.size >= maxKeys) over.clear()
    over.set(key, { rule, until: time + retryMs })
    return !known
  }

  function note({ rule, key }: Entry, { remaining, resetMs }: Verdict, time: number): void {
    const count = rule.replicas ?? replicas()
    const left = Math.floor(remaining * (isAlone() ? shareAlone : share / count))
    const known = leases.get(key)
    if (left === 0) return void (known !== undefined && known.owed === 0 && leases.delete(key))
    if (known === undefined && leases.size >= maxKeys) return
    leases.set(key, {
      left,
      owed: known?.owed ?? 0,
      until: time + Math.min(leaseMs, resetMs),
      remaining,
      resetAt: time + resetMs,
      rule
    })
  }

  /** Tells what is owed of leases that are over, and forgets them. */
  async function settle(time: number): Promise<void> {
    const entries: Entry[] = []
    for (const [key, lease] of leases) {
      if (time < lease.until) continue
      leases.delete(key)
      if (lease.owed > 0) entries.push({ rule: lease.rule, key, owed: lease.owed })
    }
    for (let index = 0; index < entries.length; index += 200)
      await tally.take(entries.slice(index, index + 200), false).catch(() => {})
  }

  return {
    peek,
    ask,
    look: async (rules, keys) => {
      const verdicts = await tally.take(
        rules.map((rule, index) => ({ rule, key: keys[index] as string, owed: 0 })),
        false
      )
      return verdicts.map((verdict, index) => ({
        ...verdict,
        remaining: Math.max(0, verdict.remaining - (leases.get(keys[index] as string)?.owed ?? 0))
      }))
    },
    forget: subject => {
      for (const key of leases.keys()) if (key.startsWith(subject)) leases.delete(key)
      for (const key of over.keys()) if (key.startsWith(subject)) over.delete(key)
    },
    close: async () => {
      clearInterval(timer)
      await settle(Infinity)
    }
  }
}
function overFor(waitMs: number): Verdict {
  return {
    exceeded: true,
    remaining: 0,
    resetMs: waitMs,
    retryMs: waitMs
  }
}
