/** One hour's use of one limit, as small as it is kept and sent: how much callers needed, and who the greatest were. */

export const hourMs = 3_600_000
/** So many callers of an hour and limit are known by name. */
export const maxTop = 50

/** Key, the lowest number that would not have refused it, what this process adds to that number at most, when, and how often it was refused. */
export type Top = readonly [key: string, peak: number, most: number, at: number, refused: number]

export interface LimitUsage {
  readonly limit: string
  readonly kind: 'fixed' | 'sliding' | 'bucket' | 'attempts'
  readonly windowMs: number
  /** What a bucket is refilled with in a window. */
  readonly per: number
  readonly requests: number
  readonly refused: number
  /** Whether callers had to be forgotten in the middle of a window. */
  readonly cut: boolean
  /** How many callers needed so much at most: class of the number, callers. */
  readonly callers: ReadonlyArray<readonly [place: number, count: number]>
  /** Those that needed most, first. */
  readonly top: readonly Top[]
}

/** What one process saw in one hour. */
export interface HourUsage {
  /** Since the epoch. */
  readonly hour: number
  readonly from: number
  readonly until: number
  /** How many there were, as this one knew. */
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

/** The greatest number of a class. */
export function greatestOf(place: number): number {
  if (place < 32) return place
  const octave = Math.floor(place / 16) - 1
  return (place - octave * 16 + 1) * 2 ** octave - 1
}

export function addTop(bin: OpenBin, one: Top): void {
  const { callers, top } = bin
  const [key, peak] = one
  const place = placeOf(peak)
  callers.set(place, (callers.get(place) ?? 0) + 1)
  if (top.length >= maxTop && peak <= (top[maxTop - 1] as Top)[1]) return
  // It may have been forgotten and come back.
  const known = top.findIndex(other => other[0] === key)
  const former = top[known]
  if (former !== undefined) top.splice(known, 1)
  const added: Top =
    former === undefined
      ? one
      : [
          key,
          Math.max(peak, former[1]),
          Math.max(one[2], former[2]),
          peak > former[1] ? one[3] : former[3],
          one[4] + former[4]
        ]
  const before = top.findIndex(other => other[1] < added[1])
  top.splice(before === -1 ? top.length : before, 0, added)
  if (top.length > maxTop) top.pop()
}

/** Whether what another process left is a record: it may be another release's, or damaged. */
export function isHourUsage(found: unknown): found is HourUsage {
  const { hour, from, until, processes, limits } = (found ?? {}) as Record<string, unknown>
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
