/** The addresses of one upstream: made of config and DNS, and replaced when DNS says otherwise. */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { targetsOf, type Target } from '../config/schema/upstream-addresses.ts'
import { Address, type Endpoint, keyOf } from './address.ts'
import type { Transition } from './address-state.ts'
import { Balancer } from './balancer.ts'
import { HealthChecks } from './health.ts'
import { isName, type Lookup, type Replica, type Watch, watchName } from './resolver.ts'
import type { TlsFiles } from './tls-files.ts'

export interface AddressEvents {
  /** The state of an address has changed. */
  readonly onTransition: (address: string, transition: Transition) => void
  /** DNS gave other addresses. */
  readonly onMoved: (addresses: readonly string[]) => void
  readonly onUnresolved: (name: string, error: unknown) => void
  /** A request goes to an address once more, or elsewhere since it found no connection. */
  readonly onRetry: (kind: 'again' | 'elsewhere') => void
  /** A request has waited for a connection, which it got or gave up. */
  readonly onWaited: (ms: number) => void
}

interface Options {
  readonly config: UpstreamConfig
  readonly tls: TlsFiles
  readonly events: AddressEvents
  readonly lookup?: Lookup
  /** Told of the addresses whenever there are others. */
  readonly onChanged?: (addresses: readonly Address[]) => void
}

export class AddressSet {
  readonly balancer: Balancer
  readonly #options: Options
  readonly #targets: readonly Target[]
  /** Of each target, what it stands for. */
  readonly #endpoints: Array<readonly Endpoint[]>
  readonly #watches: Watch[] = []
  readonly #retiring = new Set<Address>()
  readonly #checks: HealthChecks | undefined

  constructor(options: Options) {
    const { config } = options
    this.#options = options
    this.#targets = targetsOf(config)
    this.#endpoints = this.#targets.map(({ url, weight }) => [
      { origin: new URL(url).origin, weight }
    ])
    const addresses = this.#endpoints.flat().map(endpoint => this.#create(endpoint))
    this.balancer = new Balancer(addresses, config.breaker.maxOpenFor)
    this.#checks = config.health && new HealthChecks(config.health)
    this.#checks?.follow(addresses)
    for (const [index, { url }] of this.#targets.entries()) {
      if (isName(new URL(url).hostname)) this.#watch(index, new URL(url).hostname)
    }
  }

  /** Settles when each name was looked up once. */
  async resolved(): Promise<void> {
    await Promise.all(this.#watches.map(({ first }) => first))
  }

  /** Lets what is running finish. */
  async retire(): Promise<void> {
    this.#stop()
    await Promise.all(this.#all().map(address => address.retire()))
  }

  /** Ends what is running. */
  async close(): Promise<void> {
    this.#stop()
    await Promise.all(this.#all().map(address => address.close()))
  }

  #all(): Address[] {
    return [...this.balancer.addresses, ...this.#retiring]
  }

  #stop(): void {
    for (const watch of this.#watches) watch.stop()
    this.#checks?.stop()
  }

  #watch(index: number, name: string): void {
    const { config, events, lookup } = this.#options
    let isFailing = false
    const watch = watchName({
      name,
      dns: config.dns,
      ...(lookup && { lookup }),
      onReplicas: replicas => {
        isFailing = false
        this.#move(index, replicas)
      },
      onFailed: error => {
        if (!isFailing) events.onUnresolved(name, error)
        isFailing = true
      }
    })
    this.#watches.push(watch)
  }

  #create(endpoint: Endpoint): Address {
    const { config, tls, events } = this.#options
    return new Address(endpoint, config, tls, ({ label }, transition) => {
      events.onTransition(label, transition)
      // It may have moved.
      if (transition.failure === 'connect') for (const watch of this.#watches) watch.refresh()
    })
  }

  #move(index: number, replicas: readonly Replica[]): void {
    const target = this.#targets[index]
    if (target === undefined) return
    const { origin } = new URL(target.url)
    this.#endpoints[index] = replicas.map(({ ips, port, weight }) => ({
      origin,
      ips,
      weight: weight * target.weight,
      ...(port !== undefined && { port })
    }))
    this.#replace(this.#endpoints.flat())
  }

  #replace(endpoints: readonly Endpoint[]): void {
    const before = new Map(this.balancer.addresses.map(address => [address.key, address]))
    const isFirst = this.balancer.addresses.every(({ endpoint }) => endpoint.ips === undefined)
    const after = new Map<string, Address>()
    for (const endpoint of endpoints) {
      const key = keyOf(endpoint)
      if (after.has(key)) continue
      after.set(key, before.get(key) ?? this.#add(endpoint, isFirst))
    }
    const gone = [...before].filter(([key]) => !after.has(key)).map(([, address]) => address)
    if (gone.length === 0 && after.size === before.size) return
    this.balancer.replace([...after.values()])
    this.#checks?.follow(this.balancer.addresses)
    for (const address of gone) this.#retire(address)
    this.#options.onChanged?.(this.balancer.addresses)
    if (!isFirst) this.#options.events.onMoved(this.balancer.addresses.map(({ label }) => label))
  }

  #add(endpoint: Endpoint, isFirst: boolean): Address {
    const address = this.#create(endpoint)
    if (!isFirst) address.state.startSlowly(performance.now())
    return address
  }

  #retire(address: Address): void {
    this.#retiring.add(address)
    const forget = () => this.#retiring.delete(address)
    address.retire().then(forget, forget)
  }
}
