/** Health checks: each address is asked again and again, whether or not it gets requests. */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Address } from './address.ts'

type HealthConfig = NonNullable<UpstreamConfig['health']>

const timeoutMs = 2000
/** One check may get lost; an address that answers again is of use at once. */
const failuresUntilUnhealthy = 2

/** @returns a function that ends the checks */
export function checkHealth(addresses: readonly Address[], config: HealthConfig): () => void {
  const ends = addresses.map(address => checkAddress(address, config))
  return () => {
    for (const end of ends) end()
  }
}

/** The next check begins a while after the last has ended. */
function checkAddress(address: Address, { path, interval }: HealthConfig): () => void {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  let failures = 0

  async function check(): Promise<void> {
    const passes = await address.check(path, timeoutMs).then(
      status => status >= 200 && status < 300,
      () => false
    )
    if (isOver) return
    failures = passes ? 0 : failures + 1
    if (passes) address.setHealthy(true)
    else if (failures >= failuresUntilUnhealthy) address.setHealthy(false)
    // A tenth more or less, so that checks of many replicas do not meet.
    timer = setTimeout(() => void check(), interval * (0.9 + Math.random() / 5)).unref()
  }
  void check()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
