/** Who may not try to sign in for a while: the arithmetic, the contract of its stores, and the one that keeps it in this process. */

export interface LockoutRule {
  /** So many failures within `withinMs` lock. */
  readonly after: number
  readonly withinMs: number
  /** The first lock's length; each further one is twice as long, up to `longestMs`. */
  readonly delayMs: number
  readonly longestMs: number
  /** How long after a lock it is remembered, so that the next one is longer. */
  readonly forgetMs: number
  /** Whether one more failure locks again, for so long as failures are remembered; otherwise it takes as many as the first time. */
  readonly strict: boolean
}

/** Failures, when they are forgotten, locks so far, the end of the last one. Times in milliseconds. */
export type LockoutState = readonly [failures: number, forgottenAt: number, locks: number, lockedUntil: number]

export interface Attempt {
  /** Milliseconds until one may try; 0 where this attempt may go on. It is counted as a failure then. */
  readonly waitMs: number
  /** Locks before this attempt: what tells, when it is given back, whether one has come of it since. */
  readonly locks: number
  /** How long it locks, should it not be given back; 0 where it does not. */
  readonly lockMs: number
}

export interface Ban {
  readonly key: string
  readonly until: number
}

export interface Lockouts {
  /** Counts an attempt as a failure, so that attempts at the same time do not slip past; none while it is locked, so that nobody can make a lock longer. */
  attempt (key: string, rule: LockoutRule): Promise<Attempt>
  /** Milliseconds until one may try; nothing is counted. */
  look (key: string, rule: LockoutRule): Promise<number>
  /** Takes an attempt back that was no failure, and with it a lock that would not have come without it. */
  giveBack (key: string, rule: LockoutRule, attempt: Attempt): Promise<void>
  /** Who is locked now; who is free again first comes first. */
  list (): Promise<Ban[]>
  /** Forgets all about them. */
  lift (keys: readonly string[]): Promise<void>
  close (): void
}

/** @returns what the attempt meets, and the state once it was counted */
export function countAttempt ({ after, withinMs, delayMs, longestMs, forgetMs, strict }: LockoutRule, state: LockoutState | undefined, now: number): Attempt & { readonly next: LockoutState | undefined } {
  const [failed = 0, forgottenAt = 0, locked = 0, lockedUntil = 0] = state ?? []
  if (now < lockedUntil) return { waitMs: lockedUntil - now, locks: locked, lockMs: 0, next: undefined }
  const isFresh = now >= forgottenAt
  const failures = (isFresh ? 0 : failed) + 1
  const locks = now >= lockedUntil + forgetMs ? 0 : locked
  if (failures < after) return { waitMs: 0, locks, lockMs: 0, next: [failures, isFresh ? now + withinMs : forgottenAt, locks, lockedUntil] }
  const lockMs = Math.min(longestMs, delayMs * 2 ** Math.min(locks, 40))
  return { waitMs: 0, locks, lockMs, next: [strict ? after - 1 : 0, strict ? now + lockMs + withinMs : 0, locks + 1, now + lockMs] }
}

/** @returns the state without the attempt */
export function takeBackAttempt ({ after, withinMs }: LockoutRule, [failures, forgottenAt, locks, lockedUntil]: LockoutState, attempt: Pick<Attempt, 'locks'>, now: number): LockoutState {
  if (locks === attempt.locks) return [Math.max(0, failures - 1), forgottenAt, locks, lockedUntil]
  // It locked, or another did that was tried at the same time; without it there was one failure less than it takes.
  if (locks === attempt.locks + 1 && now < lockedUntil) return [after - 1, now + withinMs, attempt.locks, 0]
  return [failures, forgottenAt, locks, lockedUntil]
}

/** When nothing of a state counts any more. */
const lockoutEnd = ([, forgottenAt, locks, lockedUntil]: LockoutState, forgetMs: number): number => Math.max(forgottenAt, locks > 0 ? lockedUntil + forgetMs : 0)

const maxKeys = 100_000

/** Bounded: who is not locked gives way first, since clients choose the keys. */
export function createMemoryLockouts (now: () => number = Date.now): Lockouts {
  const states = new Map<string, { state: LockoutState, endsAt: number }>()

  function keep (key: string, state: LockoutState, rule: LockoutRule): void {
    states.delete(key)
    if (states.size >= maxKeys) makeRoom()
    states.set(key, { state, endsAt: lockoutEnd(state, rule.forgetMs) })
  }

  function makeRoom (): void {
    const time = now()
    for (const [key, { state: [, , , lockedUntil], endsAt }] of states) if (endsAt <= time || lockedUntil <= time) states.delete(key)
    if (states.size >= maxKeys) states.delete(states.keys().next().value ?? '')
  }

  const stateOf = (key: string, time: number) => {
    const found = states.get(key)
    return found !== undefined && found.endsAt > time ? found.state : undefined
  }

  return {
    async attempt (key, rule) {
      const time = now()
      const { next, ...attempt } = countAttempt(rule, stateOf(key, time), time)
      if (next !== undefined) keep(key, next, rule)
      return attempt
    },
    async look (key, rule) {
      const time = now()
      return countAttempt(rule, stateOf(key, time), time).waitMs
    },
    async giveBack (key, rule, attempt) {
      const time = now()
      const state = stateOf(key, time)
      if (state !== undefined) keep(key, takeBackAttempt(rule, state, attempt, time), rule)
    },
    async list () {
      const time = now()
      const bans: Ban[] = []
      for (const [key, { state: [, , , until] }] of states) if (until > time) bans.push({ key, until })
      return bans.toSorted((a, b) => a.until - b.until)
    },
    async lift (keys) { for (const key of keys) states.delete(key) },
    close: () => {}
  }
}
