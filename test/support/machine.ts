/** Tells a slow gateway from a busy machine. */
import { readFileSync } from 'node:fs'

/**
 * How long the main threads of processes have been ready to run without a core, since they began:
 * the difference of two readings is what a busy machine added to a duration. Linux counts it; on
 * other systems it is 0.
 * @returns milliseconds
 */
export function waitedForCoreMs(pids: readonly number[] = [process.pid]): number {
  return pids.map(waitedMs).reduce((sum, ms) => sum + ms, 0)
}

function waitedMs(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')
    return Number(waitedNs) / 1e6
  } catch {
    return 0
  }
}
