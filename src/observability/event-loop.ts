/**
 * The delay of the event loop: how much later than asked for a timer fires, which all requests
 * wait for as well. The histogram of Node's own monitor has no buckets to add up over processes,
 * and is reset by each scrape.
 */
import type { Metrics } from './metrics.ts'

const everyMs = 50
/** Seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** @returns ends it */
export function measureEventLoop(metrics: Metrics): () => void {
  const delays = metrics
    .histogram(
      'console_gateway_event_loop_delay_seconds',
      'How much later than due the process gets to its work, measured twenty times a second.',
      [],
      buckets
    )
    .with()
  let dueAt = performance.now() + everyMs
  const timer = setInterval(() => {
    const now = performance.now()
    delays.observe(Math.max(0, now - dueAt) / 1000)
    dueAt = now + everyMs
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
