/** How the CPU time of a function grows with the length of what it reads. */

export interface Growth {
  readonly isLinear: boolean
  /** For the message of a failed test. */
  readonly figures: string
}

const lengths = [16, 64, 256].map(kib => kib * 1024)
const tries = 5
/** Four times the length costs a linear reader four times the time, and a quadratic one sixteen times. */
const maxRatio = 8
/** Below this a collection of garbage outweighs what is measured; a quadratic reader needs far more for 256 KiB. */
const noiseMs = 4
/** A reader that is this slow needs no second try. */
const tooSlowMs = 1000

/** @param prepare makes the input of that length, and returns the call that is measured */
export function growthOf (prepare: (length: number) => () => unknown): Growth {
  const costs: number[] = []
  for (const length of lengths) {
    costs.push(cheapest(prepare(length)))
    if ((costs.at(-1) ?? 0) > tooSlowMs) break
  }
  const isLinear = costs.length === lengths.length && costs.every((cost, index) => {
    const shorter = costs[index - 1]
    return shorter === undefined || cost <= shorter * maxRatio + noiseMs
  })
  const figures = costs.map((cost, index) => `${(lengths[index] ?? 0) / 1024} KiB ${cost.toFixed(2)} ms`)
  return { isLinear, figures: figures.join(', ') }
}

/** The CPU time of this thread alone: other processes and threads of the machine do not count. */
function cheapest (call: () => unknown): number {
  let best = Infinity
  for (let run = 0; run < tries && best > 0; run++) {
    const start = process.threadCpuUsage()
    call()
    const { user, system } = process.threadCpuUsage(start)
    best = Math.min(best, (user + system) / 1000)
    if (best > tooSlowMs) break
  }
  return best
}
