/** Lockouts of sign-in: the arithmetic, and the contract of the stores that keep them. */

export interface LockoutRule {
  /** So many failures within `withinMs` lock. */
  readonly after: number
  readonly withinMs: number
  /** The first lock's length; each further one is twice as long, up to `maxDelayMs`. */
  readonly delayMs: number
  readonly maxDelayMs: number
  /** How long after a lock it is remembered, so that the next one is longer. */
  readonly forgetMs: number
  /** Whether one more failure locks again, for so long as failures are remembered; otherwise it takes as many as the first time. */
  readonly strict: boolean
}

/** Failures, when they are forgotten, locks so far, the end of the last one. Times in milliseconds. */
export type LockoutState = readonly [
  failures: number,
  forgottenAt: number,
  locks: number,
  lockedUntil: number
]

export interface Attempt {
  /** Identifies the attempt when it is given back, so that only what was counted is taken back. */
  readonly id: string
  /** Whether it was counted in this process alone, since Redis did not answer. */
  readonly isLocal?: boolean
  /** Milliseconds until one may try; 0 where this attempt may go on. It is counted as a failure then. */
  readonly waitMs: number
  /** Locks before this attempt: what tells, when it is given back, whether one has come of it since. */
  readonly locks: number
  /** How long it locks, should it not be given back; 0 where it does not. */
  readonly lockMs: number
}

/** `locks` is unknown where Redis counted the attempt, but its answer was lost. */
export type RefundedAttempt = Pick<Attempt, 'id' | 'isLocal'> & {
  readonly locks: number | undefined
}

/** Whether a password of a key may be evaluated now. */
export interface Admission {
  /** Identifies the place in `settle`; undefined where none was to be had. */
  readonly place: string | undefined
  /** Milliseconds until the lock ends; 0 without a place: all of them are taken for the moment. */
  readonly waitMs: number
}

export interface ActiveLock {
  readonly key: string
  readonly until: number
}

export interface Lockouts {
  /** Counts an attempt as a failure, so that attempts at the same time do not slip past; none while it is locked, so that nobody can make a lock longer. */
  attempt(key: string, rule: LockoutRule, id?: string): Promise<Attempt>
  /** Milliseconds until one may try; nothing is counted. */
  look(key: string, rule: LockoutRule): Promise<number>
  /**
   * Takes an attempt back that was no failure, and with it a lock that would not have come without
   * it. One that was never counted, or was given back before, changes nothing.
   */
  refund(key: string, rule: LockoutRule, attempt: RefundedAttempt): Promise<void>
  /**
   * Takes a place in which a password is evaluated. There are as many as failures are left before
   * the key is locked, so that guesses at the same time cannot be more than that.
   */
  admit(key: string, rule: LockoutRule, place?: string): Promise<Admission>
  /**
   * Gives the place back; a failure is counted then.
   * @returns how long it locks, in milliseconds; 0 where it does not
   */
  settle(key: string, rule: LockoutRule, place: string, failed: boolean): Promise<number>
  /** Who is locked now; who is free again first comes first. */
  list(): Promise<ActiveLock[]>
  /** Forgets all about them. */
  lift(keys: readonly string[]): Promise<void>
  close(): void
}

/** @returns what the attempt meets, and the state once it was counted */
export function countAttempt(
  { after, withinMs, delayMs, maxDelayMs, forgetMs, strict }: LockoutRule,
  state: LockoutState | undefined,
  now: number
): Omit<Attempt, 'id'> & { readonly next: LockoutState | undefined } {
  const [failed = 0, forgottenAt = 0, locked = 0, lockedUntil = 0] = state ?? []
  if (now < lockedUntil) {
    return { waitMs: lockedUntil - now, locks: locked, lockMs: 0, next: undefined }
  }
  const isFresh = now >= forgottenAt
  const failures = (isFresh ? 0 : failed) + 1
  const locks = now >= lockedUntil + forgetMs ? 0 : locked
  if (failures < after) {
    return {
      waitMs: 0,
      locks,
      lockMs: 0,
      next: [failures, isFresh ? now + withinMs : forgottenAt, locks, lockedUntil]
    }
  }
  const lockMs = Math.min(maxDelayMs, delayMs * 2 ** Math.min(locks, 40))
  return {
    waitMs: 0,
    locks,
    lockMs,
    next: [strict ? after - 1 : 0, strict ? now + lockMs + withinMs : 0, locks + 1, now + lockMs]
  }
}

/** @returns the state without the attempt */
export function refundAttempt(
  { after, withinMs }: LockoutRule,
  [failures, forgottenAt, locks, lockedUntil]: LockoutState,
  attempt: Pick<Attempt, 'locks'>,
  now: number
): LockoutState {
  if (locks === attempt.locks) return [Math.max(0, failures - 1), forgottenAt, locks, lockedUntil]
  // It locked, or another did that was tried at the same time; without it there was one failure less than it takes.
  if (locks === attempt.locks + 1 && now < lockedUntil) {
    return [after - 1, now + withinMs, attempt.locks, 0]
  }
  return [failures, forgottenAt, locks, lockedUntil]
}

/** Who was counted while nobody was locked, and meets a lock now, was counted one lock ago. */
export function locksBefore([, , locks, lockedUntil]: LockoutState, now: number): number {
  return now < lockedUntil ? locks - 1 : locks
}

/** How many passwords may be evaluated at the same time: as many as failures are left. */
export function placesLeft({ after }: LockoutRule, state: LockoutState, now: number): number {
  const [failures, forgottenAt] = state
  return after - (now >= forgottenAt ? 0 : failures)
}

/** A place whose process ended before it settled is free again after this. */
export const placeMs = 120_000

/** When nothing of a state counts any more. */
export const lockoutEnd = (
  [, forgottenAt, locks, lockedUntil]: LockoutState,
  forgetMs: number
): number => Math.max(forgottenAt, locks > 0 ? lockedUntil + forgetMs : 0)
