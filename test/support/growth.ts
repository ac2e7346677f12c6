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
/**
 * So cheap, nothing is quadratic: at 256 KiB that would be a hundredfold. Long texts have steps of
 * their own, such as memory that the system has to map (escapes of a query: 0.03 ms at 64 KiB, 0.8 ms
 * at 256 KiB).
 */
const cheapNsPerLetter = 5
const tries = 2
/** A neighbour on the processor makes a step look steep once. A quadratic reader is steep each time. */
const looks = 4
/** The system counts CPU time in ticks of some milliseconds: a call is repeated for so long. */
const measureMs = 30
/** A reader that is this slow needs no second try. */
const tooSlowMs = 1000

type Prepare = (length: number) => () => unknown

/** @param prepare makes the input of that length, and returns the call that is measured */
export function growthOf(prepare: Prepare): Growth {
  const costs: number[] = []
  let isLinear = true
  for (const [index, length] of lengths.entries()) {
    const cost = cheapest(prepare(length))
    const shorter = costs.at(-1) ?? cost
    costs.push(cost)
    isLinear = !isSteep(shorter, cost, length) || !staysSteep(prepare, index)
    if (!isLinear) break
  }
  const figures = costs.map(
    (cost, index) => `${(lengths[index] ?? 0) / 1024} KiB ${cost.toFixed(3)} ms`
  )
  return { isLinear, figures: figures.join(', ') }
}

/** Whether a length costs more than a linear reader needs, measured against the length before. */
function isSteep(shorter: number, cost: number, length: number): boolean {
  return cost > Math.max(shorter * maxRatio, (length * cheapNsPerLetter) / 1e6)
}

function staysSteep(prepare: Prepare, index: number): boolean {
  const length = lengths[index] ?? 0
  const before = lengths[index - 1] ?? length
  for (let look = 0; look < looks; look++) {
    const cost = cheapest(prepare(length))
    if (!isSteep(cheapest(prepare(before)), cost, length)) return false
    if (cost > tooSlowMs) return true
  }
  return true
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
