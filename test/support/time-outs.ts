/** Of exchanges whose time-outs do not matter. */
import type { TimeOuts } from '../../src/proxy/time-outs.ts'

export const noTimeOuts: TimeOuts = {
  idleMs: 60_000,
  streamIdleMs: 60_000,
  totalMs: 60_000
}
