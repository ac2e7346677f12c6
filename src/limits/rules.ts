/** How limits count: pure, so that memory, Redis (which does the same in Lua) and a replay of a log decide alike. */

export interface Rule {
  readonly name: string
  /** `fixed`: so many from the first on. `sliding`: so many in any window (the former window counts by the share of it that is still in sight). `bucket`: `burst` at once, refilled evenly. */
  readonly kind: 'fixed' | 'sliding' | 'bucket'
  readonly max: number
  readonly windowMs: number
  /** What a bucket holds. */
  readonly burst: number
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
  /** How many processes count together. */
  readonly replicas: number
}

/** Fixed: count, end. Sliding: start of the window, count, count of the one before. Bucket: when it will be full again. Times in milliseconds. */
export type State = readonly [number, number, number]

export interface Verdict {
  readonly exceeded: boolean
  readonly remaining: number
  /** Milliseconds until all is free again, if nothing comes. */
  readonly resetMs: number
  /** Milliseconds until one more would be allowed. */
  readonly retryMs: number
}

interface Look extends Verdict {
  /** The state with so many more. */
  readonly plus: (count: number) => State
}

/** What a rule says of one more, and what the state would be. */
export function look (rule: Rule, state: State | undefined, now: number): Look {
  if (rule.kind === 'fixed') return lookFixed(rule, state, now)
  return rule.kind === 'sliding' ? lookSliding(rule, state, now) : lookBucket(rule, state, now)
}

function lookFixed ({ max, windowMs }: Rule, state: State | undefined, now: number): Look {
  const [count, end] = state !== undefined && now < state[1] ? state : [0, now + windowMs]
  return { exceeded: count + 1 > max, remaining: Math.max(0, max - count), resetMs: end - now, retryMs: count + 1 > max ? end - now : 0, plus: more => [count + more, end, 0] }
}

function lookSliding ({ max, windowMs }: Rule, state: State | undefined, now: number): Look {
  const start = Math.floor(now / windowMs) * windowMs
  const [then, counted, former] = state ?? [0, 0, 0]
  const current = then === start ? counted : 0
  const previous = then === start ? former : then === start - windowMs ? counted : 0
  const elapsed = now - start
  const used = current + previous * (1 - elapsed / windowMs)
  const exceeded = used + 1 > max
  const freedHere = previous > 0 && current <= max - 1 ? windowMs * (1 - (max - 1 - current) / previous) - elapsed : Infinity
  const freedNext = windowMs - elapsed + (current > max - 1 ? windowMs * (1 - (max - 1) / current) : 0)
  return {
    exceeded,
    remaining: Math.max(0, Math.floor(max - used)),
    resetMs: current > 0 ? 2 * windowMs - elapsed : windowMs - elapsed,
    retryMs: exceeded ? Math.max(1, Math.ceil(Math.min(freedHere, freedNext))) : 0,
    plus: more => [start, current + more, previous]
  }
}

function lookBucket ({ max, windowMs, burst }: Rule, state: State | undefined, now: number): Look {
  const each = windowMs / max
  const full = Math.max(state?.[0] ?? 0, now)
  const room = burst * each - (full - now)
  const exceeded = room < each
  return { exceeded, remaining: Math.max(0, Math.floor(room / each)), resetMs: Math.ceil(full - now), retryMs: exceeded ? Math.max(1, Math.ceil(each - room)) : 0, plus: more => [full + more * each, 0, 0] }
}

/** One limit of one request: its key, and how many were let pass before without being counted here. */
export interface Entry {
  readonly rule: Rule
  readonly key: string
  readonly owed: number
}

/** Counts requests. All limits of a request are taken together: where one that is enforced refuses, none of them counts it. */
export interface Tally {
  /**
   * @param wants false only counts what is owed
   * @returns a verdict for each entry; `remaining` is what is left after this one
   * @throws where the counters cannot be asked
   */
  readonly take: (entries: readonly Entry[], wants: boolean) => Promise<readonly Verdict[]>
}

export interface States {
  readonly get: (key: string) => State | undefined
  readonly set: (key: string, state: State, ttlMs: number) => void
}

/** The decision itself, over states that are at hand. */
export function decide (entries: readonly Entry[], wants: boolean, states: States, now: number): Verdict[] {
  const looks = entries.map(({ rule, key, owed }) => {
    const before = look(rule, states.get(key), now)
    return owed === 0 ? before : look(rule, before.plus(owed), now)
  })
  const refused = looks.some(({ exceeded }, index) => exceeded && (entries[index] as Entry).rule.enforced)
  return entries.map(({ rule, key, owed }, index) => {
    const { exceeded, remaining, resetMs, retryMs, plus } = looks[index] as Look
    const counts = wants && !refused && !exceeded
    if (counts || owed > 0) states.set(key, plus(counts ? 1 : 0), 2 * rule.windowMs)
    return { exceeded, remaining: counts ? remaining - 1 : remaining, resetMs, retryMs }
  })
}
