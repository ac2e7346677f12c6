/** Health checks: each address is asked again and again, whether or not it gets requests. */
import { setTimeout as wait } from 'node:timers/promises'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Address } from './address.ts'

const timeoutMs = 2000
/** One check may get lost; an address that answers again is of use at once. */
const failuresUntilUnhealthy = 2

/** The next check begins a while after the last has ended. @param signal ends them */
export async function checkHealth(
  address: Address,
  { path, interval }: NonNullable<UpstreamConfig['health']>,
  signal: AbortSignal
): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    const status = await address.check(path, timeoutMs).catch(() => 0)
    if (signal.aborted) return
    const passes = status >= 200 && status < 300
    failures = passes ? 0 : failures + 1
    if (passes || failures >= failuresUntilUnhealthy) address.setHealthy(passes)
    // A tenth more or less, so that checks of many replicas do not meet.
    const pauseMs = interval * (0.9 + Math.random() / 5)
    await wait(pauseMs, undefined, { ref: false, signal }).catch(() => {})
  }
}
