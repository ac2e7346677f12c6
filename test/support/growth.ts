/** How the CPU time of a function grows with the length of what it reads. */

export interface Growth {
  readonly isLinear: boolean
  /** For the message of a failed test. */
  readonly figures: string
}

/** The short ones too: beyond 16 Ki letters V8 takes a text's length for its hash, which hides a quadratic search. */
const lengths = [1, 4, 16, 64, 256].map(kib => kib * 1024)
/** Four times the length costs a linear reader four times the time, and a quadratic one sixteen times. */
const maxRatio = 8
/** Collections of garbage; a quadratic reader costs far more for 256 KiB. */
const noiseMs = 0.5
const tries = 2
/** The system counts CPU time in ticks of some milliseconds: a call is repeated for so long. */
const measureMs = 30
/** A reader that is this slow needs no second try. */
const tooSlowMs = 1000

/** @param prepare makes the input of that length, and returns the call that is measured */
export function growthOf(prepare: (length: number) => () => unknown): Growth {
  const costs: number[] = []
  for (const length of lengths) {
    costs.push(cheapest(prepare(length)))
    if ((costs.at(-1) ?? 0) > tooSlowMs) break
  }
  const isLinear =
    costs.length === lengths.length &&
    costs.every((cost, index) => {
      const shorter = costs[index - 1]
      return shorter === undefined || cost <= shorter * maxRatio + noiseMs
    })
  const figures = costs.map(
    (cost, index) => `${(lengths[index] ?? 0) / 1024} KiB ${cost.toFixed(3)} ms`
  )
  return { isLinear, figures: figures.join(', ') }
}

/** Of several tries the cheapest: the others were interrupted, or paid for a collection of garbage. */
function cheapest(call: () => unknown): number {
  let best = Infinity
  for (let run = 0; run < tries; run++) {
    best = Math.min(best, costOf(call))
    if (best > tooSlowMs) break
  }
  return best
}

/** The CPU time of one call in this thread alone: other processes and threads do not count. */
function costOf(call: () => unknown): number {
  const start = process.threadCpuUsage()
  let spent = 0
  let calls = 0
  for (let batch = 1; spent < measureMs; batch *= 2) {
    for (let index = 0; index < batch; index++) call()
    calls += batch
    const { user, system } = process.threadCpuUsage(start)
    spent = (user + system) / 1000
  }
  return spent / calls
}
