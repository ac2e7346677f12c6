/** Lockouts of sign-in: the arithmetic, and the contract of their stores. */

export interface LockoutRule {
  /** Failures within `withinMs` that lock. */
  readonly after: number
  readonly withinMs: number
  /** The first lock's length; each further one is twice as long, up to `maxDelayMs`. */
  readonly delayMs: number
  readonly maxDelayMs: number
  /** Time for which a lock is remembered after its end, so that the next one is longer. */
  readonly forgetMs: number
  /**
   * Whether, after a lock, one failure locks again as long as failures are remembered; otherwise it
   * takes `after` again.
   */
  readonly strict: boolean
}

/**
 * Failures, the time they expire, locks so far, the end of the last lock. Times in milliseconds.
 */
export type LockoutState = readonly [
  failures: number,
  forgottenAt: number,
  locks: number,
  lockedUntil: number
]

export interface CountedAttempt {
  /** Identifies the attempt in a refund, so that only a counted one is refunded. */
  readonly id: string
  /** Whether it was counted in this process alone, since Redis did not answer. */
  readonly isLocal?: boolean
  /**
   * Milliseconds until the next attempt is allowed; 0: this one may go on, and is counted as a
   * failure.
   */
  readonly waitMs: number
  /** Locks before this attempt: shows in a refund whether the attempt caused a lock. */
  readonly locks: number
  /** The length of the lock that it causes unless refunded; 0 without one. */
  readonly lockMs: number
  /** When the failures up to it are forgotten, unless one locks. */
  readonly forgottenAt?: number | undefined
  /** The end of the last lock before it. */
  readonly unlockedAt?: number | undefined
}

type Before = Pick<CountedAttempt, 'forgottenAt' | 'unlockedAt'>

/** All but the id is unknown where Redis counted the attempt, but its answer was lost. */
export type RefundedAttempt = Pick<CountedAttempt, 'id' | 'isLocal'> &
  Before & { readonly locks: number | undefined }

/** Whether a password may be checked now. */
export interface Admission {
  /** Identifies the place in `settle`; undefined where none was free. */
  readonly place: string | undefined
  /** Milliseconds until the lock ends; 0 without a place: all places are taken at the moment. */
  readonly waitMs: number
}

export interface ActiveLock {
  readonly key: string
  /** Milliseconds since the epoch, by the wall clock. */
  readonly until: number
}

export interface Lockouts {
  /**
   * Counts an attempt as a failure at once, so that parallel attempts cannot slip past. Not while
   * locked, so that nobody can extend a lock.
   */
  attempt(key: string, rule: LockoutRule, id?: string): Promise<CountedAttempt>
  /** Milliseconds until the next attempt is allowed; counts nothing. */
  look(key: string, rule: LockoutRule): Promise<number>
  /**
   * Takes back an attempt that did not fail, and the lock that it caused. An unknown or already
   * refunded attempt changes nothing.
   */
  refund(key: string, rule: LockoutRule, attempt: RefundedAttempt): Promise<void>
  /**
   * Takes a place for a password check. There are as many places as failures left before the lock,
   * which bounds parallel guesses.
   */
  admit(key: string, rule: LockoutRule, place?: string): Promise<Admission>
  /**
   * Releases the place, and counts a failure.
   * @returns the length of the lock that it causes, in milliseconds; 0 without one
   */
  settle(key: string, rule: LockoutRule, place: string, failed: boolean): Promise<number>
  /** Active locks, the first to end first. */
  list(): Promise<ActiveLock[]>
  /** Deletes all state of the keys. */
  lift(keys: readonly string[]): Promise<void>
  close(): void
}

/** @returns the result of the attempt, and the state after it */
export function countAttempt(
  { after, withinMs, delayMs, maxDelayMs, forgetMs, strict }: LockoutRule,
  state: LockoutState | undefined,
  now: number
): Omit<CountedAttempt, 'id'> & { readonly next: LockoutState | undefined } {
  const [failed = 0, forgottenAt = 0, locked = 0, lockedUntil = 0] = state ?? []
  if (now < lockedUntil) {
    return { waitMs: lockedUntil - now, locks: locked, lockMs: 0, next: undefined }
  }
  const isFresh = now >= forgottenAt
  const failures = (isFresh ? 0 : failed) + 1
  const locks = now >= lockedUntil + forgetMs ? 0 : locked
  const until = isFresh ? now + withinMs : forgottenAt
  const before = { forgottenAt: until, unlockedAt: lockedUntil }
  if (failures < after) {
    return { waitMs: 0, locks, lockMs: 0, ...before, next: [failures, until, locks, lockedUntil] }
  }
  const lockMs = Math.min(maxDelayMs, delayMs * 2 ** Math.min(locks, 40))
  return {
    waitMs: 0,
    locks,
    lockMs,
    ...before,
    next: [strict ? after - 1 : 0, strict ? now + lockMs + withinMs : 0, locks + 1, now + lockMs]
  }
}

/** @returns the state without the attempt */
export function refundAttempt(
  { after, withinMs }: LockoutRule,
  [failures, forgottenAt, locks, lockedUntil]: LockoutState,
  attempt: Pick<CountedAttempt, 'locks'> & Before,
  now: number
): LockoutState {
  const { forgottenAt: ends = 0, unlockedAt = now } = attempt
  if (locks === attempt.locks) return [Math.max(0, failures - 1), forgottenAt, locks, lockedUntil]
  // It, or a parallel attempt, caused a lock; without it there is one failure less than a lock
  // takes. These are forgotten as if it had not been, and the locks before it too: otherwise each
  // right password would prolong both. A lock that has ended only no longer counts: failures after
  // it are there already.
  if (locks === attempt.locks + 1) {
    const until = now < ends ? ends : now + withinMs
    if (now < lockedUntil) return [after - 1, until, attempt.locks, unlockedAt]
    return [failures, forgottenAt, attempt.locks, lockedUntil]
  }
  return [failures, forgottenAt, locks, lockedUntil]
}

/** The number of locks before the running one: attempts are only counted while there is no lock. */
export function locksBefore([, , locks, lockedUntil]: LockoutState, now: number): number {
  return now < lockedUntil ? locks - 1 : locks
}

/**
 * Passwords that may be checked at the same time: as many as failures are left. At least one: where
 * a reload lowered `after`, there may be more failures than lock, and only a further one locks.
 */
export function placesLeft({ after }: LockoutRule, state: LockoutState, now: number): number {
  const [failures, forgottenAt] = state
  return Math.max(1, after - (now >= forgottenAt ? 0 : failures))
}

/** A place is free again after this, in case its process ended before it settled. */
export const placeMs = 120_000

/** The time after which a state has no effect. */
export const lockoutEnd = (
  [, forgottenAt, locks, lockedUntil]: LockoutState,
  forgetMs: number
): number => Math.max(forgottenAt, locks > 0 ? lockedUntil + forgetMs : 0)
