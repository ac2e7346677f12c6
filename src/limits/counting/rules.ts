/** How limits count: pure, so that memory, Redis (which does the same in Lua) and a replay of a log decide alike. */

export interface Rule {
  readonly name: string
  /** `fixed`: so many from the first on. `sliding`: so many in any stretch of time that is as long. `bucket`: `burst` at once, refilled evenly. */
  readonly kind: 'fixed' | 'sliding' | 'bucket'
  readonly max: number
  readonly windowMs: number
  /** What a bucket holds. */
  readonly burst: number
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
  /** How many processes count together; undefined where they count each other. */
  readonly replicas: number | undefined
}

/** Fixed: count, end. Sliding: length of a slice, number of the newest, count of each from the newest on. Bucket: when it will be full again. Times in milliseconds. */
export type State = readonly number[]

export interface Verdict {
  readonly exceeded: boolean
  readonly remaining: number
  /** Milliseconds until all is free again, if nothing comes. */
  readonly resetMs: number
  /** Milliseconds until one more would be allowed. */
  readonly retryMs: number
  /** Of who is over: whether nobody knew it before. */
  readonly isNews?: boolean
}

interface Look extends Verdict {
  /** The state with so many more. */
  readonly plus: (count: number) => State
}

/** What a rule says of one more, and what the state would be. */
export function look(rule: Rule, state: State | undefined, now: number): Look {
  if (rule.kind === 'fixed') return lookFixed(rule, state, now)
  return rule.kind === 'sliding' ? lookSliding(rule, state, now) : lookBucket(rule, state, now)
}

function lookFixed({ max, windowMs }: Rule, state: State | undefined, now: number): Look {
  const [counted = 0, ended = 0] = state ?? []
  const isOver = ended <= now
  const count = isOver ? 0 : counted
  // A window that was made shorter ends in time.
  const end = isOver ? now + windowMs : Math.min(ended, now + windowMs)
  return {
    exceeded: count + 1 > max,
    remaining: Math.max(0, max - count),
    resetMs: end - now,
    retryMs: count + 1 > max ? end - now : 0,
    plus: more => [count + more, end]
  }
}

/** A sliding window is seen in so many slices, and one more that is partly gone: never less than the window, and a sixteenth more at most. */
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
  // With it, enough are gone for one more.
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

/** Of the slices that are in sight, the newest first. */
function countsOf(state: State | undefined, slice: number, newest: number, now: number): number[] {
  if (state === undefined) return [0]
  const [sliceThen = 0, newestThen = 0, ...counts] = state
  if (now >= (newestThen + slices + 1) * sliceThen) return [0]
  // The window has another length since a reload: what was counted counts as if it were now.
  if (sliceThen !== slice) return [counts.reduce((sum, count) => sum + count, 0)]
  const passed = Math.max(0, newest - newestThen)
  return [...Array<number>(passed).fill(0), ...counts].slice(0, slices + 1)
}

/** In milliseconds: times since 1970 are exact to less than that, and a bucket is not short of one request for what was rounded. */
export const rounding = 0.01

function lookBucket({ max, windowMs, burst }: Rule, state: State | undefined, now: number): Look {
  const each = windowMs / max
  const full = Math.max(state?.[0] ?? 0, now)
  const room = burst * each - (full - now) + rounding
  const exceeded = room < each
  return {
    exceeded,
    remaining: Math.max(0, Math.floor(room / each)),
    resetMs: Math.ceil(full - now),
    retryMs: exceeded ? Math.max(1, Math.ceil(each - room)) : 0,
    plus: more => [full + more * each]
  }
}

/** One limit of one request: its key, and how many requests passed before without being counted here. */
export interface TallyEntry {
  readonly rule: Rule
  readonly key: string
  readonly unreported: number
}

/** Counts requests. All limits of a request are decided together: where one that is enforced refuses, none of them counts it. */
export interface Tally {
  /**
   * Counts what is unreported, and one more request.
   * @returns a verdict for each entry; `remaining` is what is left after this request
   * @throws where the counters cannot be asked
   */
  readonly consume: (entries: readonly TallyEntry[]) => Promise<readonly Verdict[]>
  /**
   * Counts what is unreported, and nothing else.
   * @returns how the limit of each entry stands then
   * @throws where the counters cannot be asked
   */
  readonly report: (entries: readonly TallyEntry[]) => Promise<readonly Verdict[]>
}

export interface States {
  readonly get: (key: string) => State | undefined
  readonly set: (key: string, state: State, ttlMs: number) => void
}

/**
 * Decides over states that are at hand, and sets those that change.
 * @param consumes whether one more request is to be counted, and not only what is unreported
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
  const refused = looks.some(
    ({ exceeded }, index) => exceeded && (entries[index] as TallyEntry).rule.enforced
  )
  return entries.map(({ rule, key, unreported }, index) => {
    const { exceeded, remaining, resetMs, retryMs, plus } = looks[index] as Look
    const counts = consumes && !refused && !exceeded
    if (counts || unreported > 0) states.set(key, plus(counts ? 1 : 0), 2 * rule.windowMs)
    return { exceeded, remaining: counts ? remaining - 1 : remaining, resetMs, retryMs }
  })
}
