/** Of exchanges whose time-outs do not matter. */
import type { TimeOuts } from '../../src/proxy/receiver.ts'

export const noTimeOuts: TimeOuts = {
  idleTimeout: 60_000,
  streamIdle: 60_000,
  totalTimeout: 60_000
}
