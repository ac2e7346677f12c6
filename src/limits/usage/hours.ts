/** One hour's use of one limit in a compact form: callers by need, and those with the greatest. */

export const hourMs = 3_600_000
/** Callers that are kept by name, for each hour and limit. */
export const maxTop = 50

/**
 * Key; the lowest number that would not have refused it; the most that this process adds to that
 * number; its time; refusals.
 */
export type Top = readonly [key: string, peak: number, most: number, at: number, refused: number]

export interface LimitUsage {
  readonly limit: string
  readonly kind: 'fixed' | 'sliding' | 'bucket' | 'attempts'
  readonly windowMs: number
  /** A bucket's refill in a window. */
  readonly per: number
  readonly requests: number
  readonly refused: number
  /** Whether callers were dropped in the middle of a window. */
  readonly cut: boolean
  /** Pairs of a class of numbers and the callers whose need is in it. */
  readonly callers: ReadonlyArray<readonly [place: number, count: number]>
  /** The callers with the greatest need, greatest first. */
  readonly top: readonly Top[]
}

/** One process' record of one hour. */
export interface HourUsage {
  /** Since the epoch. */
  readonly hour: number
  readonly from: number
  readonly until: number
  /** The number of processes, as this one knew it. */
  readonly processes: number
  readonly limits: readonly LimitUsage[]
}

export interface OpenBin {
  requests: number
  refused: number
  cut: boolean
  readonly callers: Map<number, number>
  readonly top: Top[]
}

export const createBin = (from?: OpenBin): OpenBin => ({
  requests: 0,
  refused: 0,
  cut: false,
  ...from,
  callers: new Map(from?.callers),
  top: [...(from?.top ?? [])]
})

export const binToJson = ({ requests, refused, cut, callers, top }: OpenBin) => ({
  requests,
  refused,
  cut,
  callers: [...callers],
  top
})

/** Exact up to 31, then to a sixteenth. */
export function placeOf(number: number): number {
  if (number < 32) return number
  const octave = Math.floor(Math.log2(number)) - 4
  return octave * 16 + Math.floor(number / 2 ** octave)
}

/** The greatest number in a class. */
export function greatestOf(place: number): number {
  if (place < 32) return place
  const octave = Math.floor(place / 16) - 1
  return (place - octave * 16 + 1) * 2 ** octave - 1
}

export function addTop(bin: OpenBin, caller: Top): void {
  const { callers, top } = bin
  const [key, peak] = caller
  const place = placeOf(peak)
  callers.set(place, (callers.get(place) ?? 0) + 1)
  if (top.length >= maxTop && peak <= (top[maxTop - 1] as Top)[1]) return
  // A dropped caller may come back.
  const formerIndex = top.findIndex(other => other[0] === key)
  const former = top[formerIndex]
  if (former !== undefined) top.splice(formerIndex, 1)
  const added: Top =
    former === undefined
      ? caller
      : [
          key,
          Math.max(peak, former[1]),
          Math.max(caller[2], former[2]),
          peak > former[1] ? caller[3] : former[3],
          caller[4] + former[4]
        ]
  const before = top.findIndex(other => other[1] < added[1])
  top.splice(before === -1 ? top.length : before, 0, added)
  if (top.length > maxTop) top.pop()
}

/** Whether another process' value is a record: it may be of another release, or damaged. */
export function isHourUsage(value: unknown): value is HourUsage {
  const { hour, from, until, processes, limits } = (value ?? {}) as Record<string, unknown>
  return (
    [hour, from, until, processes].every(Number.isFinite) &&
    Array.isArray(limits) &&
    limits.every(
      (limit: Partial<Record<keyof LimitUsage, unknown>> | null) =>
        typeof limit?.limit === 'string' &&
        typeof limit.kind === 'string' &&
        [limit.windowMs, limit.per, limit.requests, limit.refused].every(Number.isFinite) &&
        Array.isArray(limit.callers) &&
        limit.callers.every(
          pair => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite)
        ) &&
        Array.isArray(limit.top) &&
        limit.top.every(
          top =>
            Array.isArray(top) &&
            top.length === 5 &&
            typeof top[0] === 'string' &&
            top.slice(1).every(Number.isFinite)
        )
    )
  )
}
