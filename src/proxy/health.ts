/** Active health checks: each address is asked again and again, whether or not it gets requests. */
import type { Address } from './address.ts'

export interface HealthConfig {
  readonly path: string
  readonly interval: number
  readonly timeout: number
  /** Checks in a row that have to pass before an address gets requests again. */
  readonly healthy: number
  /** Checks in a row that have to fail before it gets none. */
  readonly unhealthy: number
  readonly status: readonly number[]
}

export class HealthChecks {
  readonly #config: HealthConfig
  readonly #checks = new Map<Address, AddressCheck>()

  constructor(config: HealthConfig) {
    this.#config = config
  }

  /** From now on these are checked, and no others. */
  follow(addresses: readonly Address[]): void {
    for (const [address, check] of this.#checks) {
      if (addresses.includes(address)) continue
      check.stop()
      this.#checks.delete(address)
    }
    for (const address of addresses) {
      if (!this.#checks.has(address)) {
        this.#checks.set(address, new AddressCheck(address, this.#config))
      }
    }
  }

  stop(): void {
    this.follow([])
  }
}

/** The checks of one address: the next begins a while after the last has ended. */
class AddressCheck {
  readonly #address: Address
  readonly #config: HealthConfig
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  /** Above zero: so many passed in a row; below: failed. */
  #streak = 0

  constructor(address: Address, config: HealthConfig) {
    this.#address = address
    this.#config = config
    void this.#run()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    const { path, timeout, interval, status } = this.#config
    const passes = await this.#address.check(path, timeout).then(
      answered => status.includes(answered),
      () => false
    )
    if (this.#isStopped) return
    this.#count(passes)
    // A tenth more or less, so that checks of many replicas do not meet.
    const pauseMs = interval * (0.9 + Math.random() / 5)
    this.#timer = setTimeout(() => void this.#run(), pauseMs).unref()
  }

  #count(passes: boolean): void {
    const { healthy, unhealthy } = this.#config
    this.#streak = passes ? Math.max(0, this.#streak) + 1 : Math.min(0, this.#streak) - 1
    const { state } = this.#address
    if (this.#streak >= healthy) state.setHealthy(true, performance.now())
    if (-this.#streak >= unhealthy) state.setHealthy(false, performance.now())
  }
}
