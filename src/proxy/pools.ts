/**
 * Upstream pools, shared by generations with the same config for them, and closed with the last
 * such generation.
 */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { createUpstream, type Upstream, type UpstreamPool } from './upstream.ts'

export interface PoolLease {
  /** The upstream of this name. The same config gets the same connections. */
  readonly upstream: (name: string, config: UpstreamConfig, authority?: string) => Upstream
  /** Retires upstreams that no other lease uses: requests in flight finish first. */
  readonly release: () => Promise<void>
}

export interface Pools {
  readonly lease: () => PoolLease
  /** Requests in flight, by upstream name. */
  readonly inFlight: () => Iterable<readonly [name: string, requests: number]>
  /** Requests that wait for a connection, by upstream name. */
  readonly waiting: () => Iterable<readonly [name: string, requests: number]>
  readonly close: () => Promise<void>
}

interface SharedPool {
  readonly name: string
  readonly upstream: UpstreamPool
  leases: number
}

export function createPools(): Pools {
  const held = new Map<string, SharedPool>()
  const retiring = new Set<UpstreamPool>()
  const sumsOf = (count: (upstream: UpstreamPool) => number) => {
    const sums = new Map<string, number>()
    for (const { name, upstream } of held.values()) {
      sums.set(name, (sums.get(name) ?? 0) + count(upstream))
    }
    return sums
  }

  return {
    lease: () => {
      const mine = new Map<string, SharedPool>()
      return {
        upstream: (name, config, authority) => {
          const key = JSON.stringify([name, config, authority])
          let pool = mine.get(key)
          if (pool === undefined) {
            pool = held.get(key) ?? {
              name,
              upstream: createUpstream(config, {
                tls: authority === undefined ? {} : { ca: authority }
              }),
              leases: 0
            }
            pool.leases++
            mine.set(key, pool)
            held.set(key, pool)
          }
          return pool.upstream
        },
        release: async () => {
          const over = [...mine].filter(([, pool]) => --pool.leases === 0)
          mine.clear()
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
    close: async () => {
      await Promise.all(
        [...[...held.values()].map(({ upstream }) => upstream), ...retiring].map(upstream =>
          upstream.close()
        )
      )
    }
  }
}
