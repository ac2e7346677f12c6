/**
 * Upstream pools, shared by generations with the same config for them, and closed with the last
 * such generation.
 */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import type { Address, TlsFiles } from './address.ts'
import { createUpstream, type Upstream, type UpstreamPool } from './upstream.ts'
import type { UpstreamEvents } from './call.ts'

/** An address with what it ever did. */
export type AddressUse = ReturnType<Address['use']> & { readonly upstream: string }

interface SharedPool {
  readonly key: string
  readonly name: string
  readonly upstream: UpstreamPool
  leases: number
}

export type Pools = ReturnType<typeof createPools>

/** @param eventsOf who is told of the upstream of a name */
export function createPools(eventsOf?: (name: string) => UpstreamEvents) {
  const held = new Map<string, SharedPool>()

  function hold(name: string, config: UpstreamConfig, tls?: TlsFiles): SharedPool {
    const key = JSON.stringify([name, config, tls])
    const known = held.get(key)
    if (known !== undefined) return known
    const upstream = createUpstream(config, { name, tls, events: eventsOf?.(name) })
    const pool = { key, name, upstream, leases: 0 }
    held.set(key, pool)
    return pool
  }

  async function release(pool: SharedPool): Promise<void> {
    if (--pool.leases > 0) return
    held.delete(pool.key)
    await pool.upstream.retire()
  }

  /** By the name of the upstream. */
  function sumsOf(count: (upstream: UpstreamPool) => number): Map<string, number> {
    const sums = new Map<string, number>()
    for (const { name, upstream } of held.values()) {
      sums.set(name, (sums.get(name) ?? 0) + count(upstream))
    }
    return sums
  }

  return {
    lease: () => {
      const leased = new Set<SharedPool>()
      return {
        /** The upstream of this name. The same config gets the same connections. */
        upstream: (name: string, config: UpstreamConfig, tls?: TlsFiles): Upstream => {
          const pool = hold(name, config, tls)
          if (!leased.has(pool)) pool.leases++
          leased.add(pool)
          return pool.upstream
        },
        /** Retires upstreams that no other lease uses: requests in flight finish first. */
        release: async () => {
          const released = Array.from(leased, release)
          leased.clear()
          await Promise.all(released)
        }
      }
    },
    inFlight: () => sumsOf(upstream => upstream.inFlight()),
    waiting: () => sumsOf(upstream => upstream.waiting()),
    /** Of upstreams that old and new generations have under one name, the latest. */
    addresses: (): AddressUse[] => {
      const latest = new Map(Array.from(held.values(), ({ name, upstream }) => [name, upstream]))
      return [...latest].flatMap(([upstream, { addresses }]) =>
        addresses.map(address => ({ upstream, ...address.use() }))
      )
    },
    close: async () => {
      await Promise.all(Array.from(held.values(), ({ upstream }) => upstream.close()))
    }
  }
}
