/** A token bucket: `burst` at once, `max` more a window. Kept is when it is full again (GCRA). */
export interface Rate {
  readonly max: number
  readonly windowMs: number
  readonly burst: number
}

export interface Verdict {
  readonly exceeded: boolean
  readonly remaining: number
  /** Milliseconds until one more may pass; 0 where one may. */
  readonly retryMs: number
  /** Milliseconds until all is free again. */
  readonly resetMs: number
}

/** How long one request takes to be free again, in milliseconds. */
export const eachMs = ({ max, windowMs }: Rate): number => windowMs / max

/** So much times may be off, so that no rounding costs a bucket one. */
const tolerance = (rate: Rate) => Math.min(1, eachMs(rate) / 100)

/** In milliseconds, with the tolerance; in Redis it decides as well. */
export const roomMs = (rate: Rate): number => rate.burst * eachMs(rate) + tolerance(rate)

/** The state of a bucket that is full again at `full`, before one more is taken. */
export function look(rate: Rate, full: number, now: number): Verdict {
  const each = eachMs(rate)
  const used = Math.max(0, full - now)
  const room = roomMs(rate) - used
  const exceeded = room < each
  return {
    exceeded,
    remaining: Math.max(0, Math.floor(room / each)),
    retryMs: exceeded ? Math.ceil(each - room) : 0,
    resetMs: Math.ceil(used)
  }
}

/** At most twice its size from now: what was counted twice holds nobody up for long. */
export function fullAfter(rate: Rate, full: number, count: number, now: number): number {
  const each = eachMs(rate)
  return Math.min(Math.max(full, now) + count * each, now + 2 * rate.burst * each)
}
