/** Counts how often one response kept the process from all others: shaping or checking it. */
import type { Metrics } from './metrics.ts'

/** Requests that arrive meanwhile wait for so long: about what a whole request takes. */
export const stallMs = 5

/** @returns to be called with the milliseconds of each uninterrupted piece of work */
export function stallsOf(metrics: Metrics, route: string): (ms: number) => void {
  const stalls = metrics.counter(
    'console_gateway_shaping_stalls_total',
    'Responses whose parsing and shaping, or check against the contract, kept the process busy ' +
      'for more than 5 ms at once, by route.',
    ['route']
  )
  return ms => {
    if (ms > stallMs) stalls.with(route).inc()
  }
}
