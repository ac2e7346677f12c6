/**
 * The arithmetic of limits. Pure: memory, Redis (the same in Lua) and a log's replay decide alike.
 */

export interface Rule {
  readonly name: string
  /**
   * `fixed`: `max` from the first request on. `sliding`: `max` in any stretch of that length.
   * `bucket`: `burst` at once, refilled evenly.
   */
  readonly kind: 'fixed' | 'sliding' | 'bucket'
  readonly max: number
  readonly windowMs: number
  /** The size of a bucket. */
  readonly burst: number
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
  /** The number of processes that count together; undefined where they count each other. */
  readonly replicas: number | undefined
}

/**
 * Fixed: count, end. Sliding: slice length, number of the newest slice, counts from the newest on.
 * Bucket: the time when it will be full again, the time of the other numbers, the debt, and `max`
 * and `windowMs`, which give its unit. Times in milliseconds.
 */
export type State = readonly number[]

export interface Verdict {
  readonly exceeded: boolean
  readonly remaining: number
  /** Milliseconds until the whole limit is free again, without further requests. */
  readonly resetMs: number
  /** Milliseconds until one more would be allowed. */
  readonly retryMs: number
  /** Where it is asked again before that: milliseconds until one more would be allowed. */
  readonly refusesMs?: number
  /** Of an exceeded limit: whether this is the first refusal. */
  readonly isNews?: boolean
  /** The key in Redis, where it has something else: it decided and counted nothing. */
  readonly foreignKey?: string
}

/** @param counted the number of processes that count each other now */
export const replicasOf = (rule: Rule, counted: () => number): number => rule.replicas ?? counted()

interface Look extends Verdict {
  /** The state after `count` more requests. */
  readonly plus: (count: number) => State
}

/** Decides on one more request, and gives the states after it. */
export function look(rule: Rule, state: State | undefined, now: number): Look {
  if (rule.kind === 'fixed') return lookFixed(rule, state, now)
  return rule.kind === 'sliding' ? lookSliding(rule, state, now) : lookBucket(rule, state, now)
}

function lookFixed({ max, windowMs }: Rule, state: State | undefined, now: number): Look {
  const [counted = 0, ended = 0] = state ?? []
  const isOver = ended <= now
  const count = isOver ? 0 : counted
  // A window that a reload shortened ends in time.
  const end = isOver ? now + windowMs : Math.min(ended, now + windowMs)
  return {
    exceeded: count + 1 > max,
    remaining: Math.max(0, max - count),
    resetMs: end - now,
    retryMs: count + 1 > max ? end - now : 0,
    plus: more => [count + more, end]
  }
}

/**
 * Slices of a sliding window, plus one that is partly over: never shorter than the window, and at
 * most a sixteenth longer.
 */
export const slices = 16

function lookSliding({ max, windowMs }: Rule, state: State | undefined, now: number): Look {
  const slice = Math.ceil(windowMs / slices)
  const newest = Math.floor(now / slice)
  const counts = countsOf(state, slice, newest, now)
  let used = 0
  for (const count of counts) used += count
  const exceeded = used + 1 > max
  const last = counts.findIndex(count => count > 0)
  const leavesAt = (age: number) => (newest - age + slices + 1) * slice
  // When this slice leaves, there is room for one more.
  let oldest = counts.length - 1
  for (
    let left = used - (counts[oldest] as number);
    left + 1 > max && oldest > 0;
    left -= counts[oldest] as number
  ) {
    oldest--
  }
  return {
    exceeded,
    remaining: Math.max(0, max - used),
    resetMs: last === -1 ? 0 : leavesAt(last) - now,
    retryMs: exceeded ? leavesAt(oldest) - now : 0,
    plus: more => [slice, newest, (counts[0] ?? 0) + more, ...counts.slice(1)]
  }
}

/** The counts of the window's slices, the newest first. */
function countsOf(state: State | undefined, slice: number, newest: number, now: number): number[] {
  if (state === undefined) return [0]
  const [sliceThen = 0, newestThen = 0, ...counts] = state
  if (now >= (newestThen + slices + 1) * sliceThen) return [0]
  // After a reload changed the window's length, former counts count as of now.
  if (sliceThen !== slice) return [counts.reduce((sum, count) => sum + count, 0)]
  const passed = Math.max(0, newest - newestThen)
  return [...Array<number>(passed).fill(0), ...counts].slice(0, slices + 1)
}

/**
 * In whole numbers, so that no rounding costs a bucket a request: a request costs `windowMs`, a
 * millisecond gives back `max`. Exact below 2^53, which is 100 million at once in a day.
 */
function lookBucket(rule: Rule, state: State | undefined, now: number): Look {
  const { max, windowMs, burst } = rule
  const debt = debtOf(rule, state, now)
  const room = burst * windowMs - debt
  const exceeded = room < windowMs
  return {
    exceeded,
    remaining: Math.max(0, Math.floor(room / windowMs)),
    resetMs: Math.ceil(debt / max),
    retryMs: exceeded ? Math.ceil((windowMs - room) / max) : 0,
    plus: more => {
      const after = debt + more * windowMs
      return [now + after / max, now, after, max, windowMs]
    }
  }
}

function debtOf({ max, windowMs, burst }: Rule, state: State | undefined, now: number): number {
  if (state === undefined) return 0
  const [, then = 0, debtThen = 0, maxThen = 0, windowThen = 0] = state
  const debt = Math.max(0, debtThen - Math.max(0, now - then) * maxThen)
  if (maxThen === max && windowThen === windowMs) return debt
  // After a reload changed what a request costs, those that were counted stay counted.
  return Math.min(burst * windowMs, Math.round((debt * windowMs) / windowThen))
}

/** One limit of a request: its key, and earlier requests that are not counted yet. */
export interface TallyEntry {
  readonly rule: Rule
  readonly key: string
  readonly unreported: number
}

/**
 * Counts requests. All limits of a request are decided together: where an enforced one refuses,
 * none counts it.
 */
export interface Tally {
  /**
   * Counts what is unreported, and one more request.
   * @returns a verdict for each entry; `remaining` is the rest after this request
   * @throws where the counters cannot be asked
   */
  readonly consume: (entries: readonly TallyEntry[]) => Promise<readonly Verdict[]>
  /**
   * Counts unreported requests only.
   * @returns the state of each entry's limit after that
   * @throws where the counters cannot be asked
   */
  readonly report: (entries: readonly TallyEntry[]) => Promise<readonly Verdict[]>
}

/** Whether an enforced limit refuses the request. */
function isRefused(
  entries: readonly TallyEntry[],
  verdicts: ReadonlyArray<Pick<Verdict, 'exceeded'>>
): boolean {
  return entries.some(({ rule }, index) => rule.enforced && verdicts[index]?.exceeded === true)
}

export interface States {
  readonly get: (key: string) => State | undefined
  readonly set: (key: string, state: State, ttlMs: number) => void
}

/**
 * Decides by the given states, and sets those that change.
 * @param consumes whether to count one more request, and not only unreported ones
 */
export function decide(
  entries: readonly TallyEntry[],
  consumes: boolean,
  states: States,
  now: number
): Verdict[] {
  const looks = entries.map(({ rule, key, unreported }) => {
    const before = look(rule, states.get(key), now)
    return unreported === 0 ? before : look(rule, before.plus(unreported), now)
  })
  const refused = isRefused(entries, looks)
  return entries.map(({ rule, key, unreported }, index) => {
    const { exceeded, remaining, resetMs, retryMs, plus } = looks[index] as Look
    const counts = consumes && !refused && !exceeded
    if (counts || unreported > 0) states.set(key, plus(counts ? 1 : 0), 2 * rule.windowMs)
    return { exceeded, remaining: counts ? remaining - 1 : remaining, resetMs, retryMs }
  })
}
