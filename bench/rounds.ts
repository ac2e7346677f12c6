/** Measuring by turns: every contestant once a round, so that a machine whose speed drifts is the same to all. */
import { residentMegabytes } from './accounting.ts'
import type { Place } from './place.ts'
import type { Subject } from './subjects.ts'

export interface Contestant {
  readonly label: string
  readonly subject: Subject
  readonly path: string
}

export interface Pace {
  readonly rounds: number
  readonly connections: number
  readonly warmMs: number
  readonly ms: number
  readonly count?: number
  /** Before the first round each contestant answers so many, for the compiler's sake. */
  readonly warmUp: number
}

/** The figures of one contestant in one round. */
export interface Sample {
  readonly cpuMicros: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly megabytes: number
}

export interface Figure {
  readonly median: number
  /** The least and the most of the rounds; in an `interval`, its bounds. */
  readonly min: number
  readonly max: number
}

const longestWarmUpMs = 3500

/** The samples of each contestant, by label, one a round. */
export async function measure(
  place: Place,
  contestants: readonly Contestant[],
  pace: Pace
): Promise<Map<string, Sample[]>> {
  const { connections, warmMs, ms, count } = pace
  const samples = new Map<string, Sample[]>(contestants.map(({ label }) => [label, []]))
  const requestsOf = ({ subject, path }: Contestant) => ({
    origin: subject.origin,
    pid: subject.pid,
    requests: subject.requests(path, connections)
  })
  if (pace.warmUp > 0) {
    for (const contestant of contestants) {
      await place.load({
        ...requestsOf(contestant),
        warmMs: 0,
        ms: longestWarmUpMs,
        count: pace.warmUp
      })
    }
  }
  for (let round = 0; round < pace.rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
      const { requests, seconds, cpuMicros, p50Ms, p99Ms } = await place.load({
        ...requestsOf(contestant),
        warmMs,
        ms,
        ...(count !== undefined && { count })
      })
      samples.get(contestant.label)?.push({
        cpuMicros: cpuMicros / requests,
        perSecond: requests / seconds,
        p50Ms,
        p99Ms,
        megabytes: residentMegabytes(contestant.subject.pid)
      })
    }
  }
  return samples
}

export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low = NaN, high = NaN] =
    sorted.length % 2 === 1
      ? [sorted[middle], sorted[middle]]
      : [sorted[middle - 1], sorted[middle]]
  return {
    median: (low + high) / 2,
    min: sorted[0] ?? NaN,
    max: sorted.at(-1) ?? NaN
  }
}

const resamples = 2000

/** The median, and from where to where it lies with 95 % (bootstrap) in the place of least and most. */
export function interval(values: readonly number[]): Figure {
  const all = figure(values)
  const medians = Array.from(
    { length: resamples },
    () => figure(values.map(() => values[Math.floor(Math.random() * values.length)] ?? NaN)).median
  ).toSorted((a, b) => a - b)
  const bound = (part: number) => medians[Math.floor(resamples * part)] ?? NaN
  return { ...all, min: bound(0.025), max: bound(0.975) }
}

export const over = (a: number, b: number): number => a / b

/** Round by round: what drifts between rounds falls out. */
export const paired = (
  a: readonly number[],
  b: readonly number[],
  how: (a: number, b: number) => number
): Figure => figure(a.map((value, index) => how(value, b[index] ?? NaN)))
