/** Generations with the same config for an upstream share its pool; the last one closes it. */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Address } from './address.ts'
import { createUpstream, type Upstream, type UpstreamEvents } from './upstream.ts'

export type AddressUse = ReturnType<Address['use']> & { readonly upstream: string }

export type Pools = ReturnType<typeof createPools>

export function createPools(eventsOf?: (name: string) => UpstreamEvents) {
  const pools = new Map<string, { readonly name: string; readonly upstream: Upstream }>()
  const leases = new Set<ReadonlySet<string>>()

  function sumsOf(count: (upstream: Upstream) => number): Map<string, number> {
    const sums = new Map<string, number>()
    for (const { name, upstream } of pools.values()) {
      sums.set(name, (sums.get(name) ?? 0) + count(upstream))
    }
    return sums
  }

  return {
    lease: () => {
      const keys = new Set<string>()
      leases.add(keys)
      return {
        /** The upstream of this name. The same config gets the same connections. */
        upstream: (name: string, config: UpstreamConfig): Upstream => {
          const key = JSON.stringify([name, config])
          keys.add(key)
          const known = pools.get(key)?.upstream
          const upstream = known ?? createUpstream(config, name, eventsOf?.(name))
          pools.set(key, { name, upstream })
          return upstream
        },
        /** Closes upstreams that no other lease uses: requests in flight finish first. */
        release: async () => {
          leases.delete(keys)
          const unused = [...pools].filter(([key]) => ![...leases].some(used => used.has(key)))
          for (const [key] of unused) pools.delete(key)
          await Promise.all(unused.map(([, { upstream }]) => upstream.close()))
        }
      }
    },
    inFlight: () => sumsOf(upstream => upstream.inFlight()),
    waiting: () => sumsOf(upstream => upstream.waiting()),
    /** Of upstreams that old and new generations have under one name, the latest. */
    addresses: (): AddressUse[] => {
      const latest = new Map(Array.from(pools.values(), ({ name, upstream }) => [name, upstream]))
      return [...latest].flatMap(([upstream, { addresses }]) =>
        addresses.map(address => ({ upstream, ...address.use() }))
      )
    }
  }
}
