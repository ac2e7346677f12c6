/** The greatest sum of values whose spans of time do not overlap. */

export interface Span {
  /** Milliseconds; spans that only touch do not overlap. */
  readonly from: number
  readonly until: number
  readonly value: number
}

/** Weighted interval scheduling: the best sum up to each end is kept, and found by bisection. */
export function disjointSum(spans: readonly Span[]): number {
  const ordered = spans.toSorted((a, b) => a.until - b.until)
  /** The greatest sum of the first `n` spans, at index `n`. */
  const best = [0]
  for (const [index, { from, value }] of ordered.entries()) {
    const before = best[countUntil(ordered, index, from)] ?? 0
    best.push(Math.max(best[index] ?? 0, before + value))
  }
  return best[ordered.length] ?? 0
}

/** How many of the first `count` spans end at `time` or before. */
function countUntil(ordered: readonly Span[], count: number, time: number): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ordered[middle]?.until ?? Infinity) <= time) low = middle + 1
    else high = middle
  }
  return low
}
