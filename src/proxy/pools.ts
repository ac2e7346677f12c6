/**
 * Upstream pools, shared by generations with the same config for them, and closed with the last
 * such generation.
 */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { AddressStatus } from '../observability/gateway-state.ts'
import type { Address } from './address.ts'
import type { TlsFiles } from './tls-files.ts'
import {
  createUpstream,
  type Upstream,
  type UpstreamEvents,
  type UpstreamPool
} from './upstream.ts'

export interface PoolLease {
  /** The upstream of this name. The same config gets the same connections. */
  readonly upstream: (name: string, config: UpstreamConfig, tls?: TlsFiles) => Upstream
  /** Retires upstreams that no other lease uses: requests in flight finish first. */
  readonly release: () => Promise<void>
}

/** An address with what it ever did. */
export interface AddressUse extends AddressStatus {
  readonly requests: number
  /** Requests that failed by the back-end's doing. */
  readonly failures: number
}

export interface Pools {
  readonly lease: () => PoolLease
  /** Requests in flight, by upstream name. */
  readonly inFlight: () => Iterable<readonly [name: string, requests: number]>
  /** Requests that wait for a connection, by upstream name. */
  readonly waiting: () => Iterable<readonly [name: string, requests: number]>
  /** Of upstreams that old and new generations have under one name, the latest. */
  readonly addresses: () => AddressStatus[]
  /** The same addresses. */
  readonly use: () => AddressUse[]
  readonly close: () => Promise<void>
}

interface SharedPool {
  readonly name: string
  readonly upstream: UpstreamPool
  leases: number
}

/** @param eventsOf who is told of the upstream of a name */
export function createPools(eventsOf?: (name: string) => UpstreamEvents): Pools {
  const held = new Map<string, SharedPool>()
  const retiring = new Set<UpstreamPool>()
  const sumsOf = (count: (upstream: UpstreamPool) => number) => {
    const sums = new Map<string, number>()
    for (const { name, upstream } of held.values()) {
      sums.set(name, (sums.get(name) ?? 0) + count(upstream))
    }
    return sums
  }
  const open = (name: string, config: UpstreamConfig, tls: TlsFiles | undefined): SharedPool => ({
    name,
    upstream: createUpstream(config, {
      name,
      ...(tls && { tls }),
      ...(eventsOf && { events: eventsOf(name) })
    }),
    leases: 0
  })

  const addresses = () => {
    const latest = new Map<string, UpstreamPool>()
    for (const { name, upstream } of held.values()) latest.set(name, upstream)
    return [...latest].flatMap(([name, upstream]) =>
      upstream.addresses.map(address => ({ name, address }))
    )
  }

  return {
    lease: () => {
      const leased = new Map<string, SharedPool>()
      return {
        upstream: (name, config, tls) => {
          const key = JSON.stringify([name, config, tls])
          let holding = leased.get(key)
          if (holding === undefined) {
            holding = held.get(key) ?? open(name, config, tls)
            holding.leases++
            leased.set(key, holding)
            held.set(key, holding)
          }
          return holding.upstream
        },
        release: async () => {
          const over = [...leased].filter(([, holding]) => --holding.leases === 0)
          leased.clear()
          for (const [key] of over) held.delete(key)
          await Promise.all(
            over.map(async ([, { upstream }]) => {
              retiring.add(upstream)
              await upstream.retire()
              retiring.delete(upstream)
            })
          )
        }
      }
    },
    inFlight: () => sumsOf(upstream => upstream.inFlight()),
    waiting: () => sumsOf(upstream => upstream.waiting()),
    addresses: () => addresses().map(({ name, address }) => statusOf(name, address)),
    use: () =>
      addresses().map(({ name, address }) => ({
        ...statusOf(name, address),
        requests: address.requests,
        failures: address.failures
      })),
    close: async () => {
      await Promise.all(
        [...[...held.values()].map(({ upstream }) => upstream), ...retiring].map(upstream =>
          upstream.close()
        )
      )
    }
  }
}

function statusOf(
  upstream: string,
  { origin: address, state, inFlight, since }: Address
): AddressStatus {
  return { upstream, address, state, inFlight, since }
}
