/** Counts how often one response kept the process from all others while it was shaped. */
import type { Metrics } from '../observability/metrics.ts'

/** Requests that arrive meanwhile wait for so long: about what a whole request takes. */
export const stallMs = 5

/** @returns to be called with the milliseconds of each uninterrupted piece of work */
export function stallsOf(metrics: Metrics, route: string): (ms: number) => void {
  const stalls = metrics.counter(
    'console_gateway_shaping_stalls_total',
    'Responses whose parsing and shaping kept the process busy for more than 5 ms at once, by ' +
      'route.',
    ['route']
  )
  return ms => {
    if (ms > stallMs) stalls.with(route).inc()
  }
}
