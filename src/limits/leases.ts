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
  readonly close: () => Promise<void>
}

interface Options {
  readonly tally: Tally
  readonly now?: () => number
}

/** Of what is left of a limit, this part may be used before the others are told: with all replicas together a hundredth. */
const share = 0.01
const leaseMs = 1000
const maxKeys = 100_000

/**
 * Exact in one process, since what was let pass counts here at once. Several processes together exceed a limit by a
 * hundredth of it at most: each keeps at most its part of that, and the nearer the limit the less.
 */
export function createLeases ({ tally, now = Date.now }: Options): Leases {
  const leases = new Map<string, Lease>()
  /** Keys that are over an enforced limit, until one more would be allowed. */
  const over = new Map<string, number>()
  const timer = setInterval(() => { void settle(now()) }, leaseMs)
  timer.unref()

  function peek (rules: readonly Rule[], keys: readonly string[]): readonly Verdict[] | undefined {
    const time = now()
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index] as string
      const until = over.get(key)
      if (until !== undefined) {
        if (time < until) return rules.map((_, other) => other === index ? { exceeded: true, remaining: 0, resetMs: until - time, retryMs: until - time } : { exceeded: false, remaining: 0, resetMs: 0, retryMs: 0 })
        over.delete(key)
      }
      const lease = leases.get(key)
      if (lease === undefined || lease.left < 1 || time >= lease.until) return undefined
    }
    return keys.map(key => {
      const lease = leases.get(key) as Lease
      lease.left--
      lease.owed++
      lease.remaining--
      return { exceeded: false, remaining: lease.remaining, resetMs: lease.resetAt - time, retryMs: 0 }
    })
  }

  async function ask (rules: readonly Rule[], keys: readonly string[]): Promise<readonly Verdict[]> {
    const entries = rules.map((rule, index) => entryOf(rule, keys[index] as string))
    const verdicts = await take(entries, true)
    const time = now()
    verdicts.forEach((verdict, index) => note(entries[index] as Entry, verdict, time))
    return verdicts
  }

  function entryOf (rule: Rule, key: string): Entry {
    const lease = leases.get(key)
    if (lease === undefined) return { rule, key, owed: 0 }
    const { owed } = lease
    lease.owed = lease.left = 0
    return { rule, key, owed }
  }

  async function take (entries: readonly Entry[], wants: boolean): Promise<readonly Verdict[]> {
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

  function note ({ rule, key }: Entry, { exceeded, remaining, resetMs, retryMs }: Verdict, time: number): void {
    if (exceeded) {
      if (!rule.enforced) return
      if (over.size >= maxKeys) over.clear()
      over.set(key, time + retryMs)
      return
    }
    const left = Math.floor(remaining * share / rule.replicas)
    const known = leases.get(key)
    if (left === 0) return void (known !== undefined && known.owed === 0 && leases.delete(key))
    if (known === undefined && leases.size >= maxKeys) return
    leases.set(key, { left, owed: known?.owed ?? 0, until: time + Math.min(leaseMs, resetMs), remaining, resetAt: time + resetMs, rule })
  }

  /** Tells what is owed of leases that are over, and forgets them. */
  async function settle (time: number): Promise<void> {
    const entries: Entry[] = []
    for (const [key, lease] of leases) {
      if (time < lease.until) continue
      leases.delete(key)
      if (lease.owed > 0) entries.push({ rule: lease.rule, key, owed: lease.owed })
    }
    for (let index = 0; index < entries.length; index += 200) await tally.take(entries.slice(index, index + 200), false).catch(() => {})
  }

  return {
    peek,
    ask,
    close: async () => {
      clearInterval(timer)
      await settle(Infinity)
    }
  }
}
