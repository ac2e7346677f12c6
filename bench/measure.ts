/** Measuring by turns: everybody once a round, so that a machine whose speed drifts is the same to all. */
import type { Run, Sample } from './load.ts'
import type { Place } from './place.ts'
import type { Subject } from './subjects.ts'

export interface Contestant {
  readonly label: string
  readonly subject: Subject
  readonly path: string
  /** Bytes that it is sent; none without it. */
  readonly upload?: number
}

export interface Pace extends Pick<Run, 'warmMs' | 'ms' | 'count'> {
  readonly rounds: number
  readonly connections: number
  /** Before the first round each contestant answers so many, for the compiler's sake. */
  readonly warmUp: number
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
  { rounds, connections, warmUp, ...run }: Pace
): Promise<(label: string, member: keyof Sample) => number[]> {
  const samples = new Map<string, Sample[]>(contestants.map(({ label }) => [label, []]))
  const load = ({ subject, path, upload }: Contestant, how: Pick<Run, 'warmMs' | 'ms' | 'count'>) =>
    place.load({
      origin: subject.origin,
      pid: subject.pid,
      requests: subject.requests(path, connections, upload),
      ...how
    })
  for (const contestant of contestants) {
    await load(contestant, { warmMs: 0, ms: longestWarmUpMs, count: warmUp })
  }
  for (let round = 0; round < rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
      samples.get(contestant.label)?.push(await load(contestant, run))
    }
  }
  return (label, member) => (samples.get(label) ?? []).map(sample => sample[member])
}

export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (index: number) => sorted[Math.min(sorted.length - 1, Math.max(0, index))] ?? NaN
  const middle = (sorted.length - 1) / 2
  const median = (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2
  return { median, min: at(0), max: at(sorted.length) }
}

/** The median, and in the place of least and most from where to where it lies with 95 %, by ranks. */
export function interval(values: readonly number[]): Figure {
  const sorted = values.toSorted((a, b) => a - b)
  const away = 0.98 * Math.sqrt(sorted.length)
  const middle = sorted.length / 2
  const lowest = Math.max(0, Math.round(middle - away) - 1)
  const inner = figure(sorted.slice(lowest, Math.round(middle + away) + 1))
  return { ...inner, median: figure(values).median }
}

/** Round by round: what drifts between rounds falls out. */
export const ratios = (a: readonly number[], b: readonly number[]): number[] =>
  a.map((value, index) => value / (b[index] ?? NaN))
