/** The upstreams that are in use: shared by generations that name them alike, closed when the last of those is gone. */
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { createUpstream, type Upstream, type UpstreamPool } from './upstream.ts'

export interface Lease {
  /** The upstream of this name. Whoever asks with the same config gets the same connections. */
  readonly upstream: (name: string, config: UpstreamConfig, authority?: string) => Upstream
  /** What nobody else holds finishes what is running, and is closed. */
  readonly release: () => Promise<void>
}

export interface Pools {
  readonly lease: () => Lease
  /** By name, what is in flight. */
  readonly inFlight: () => Iterable<readonly [name: string, requests: number]>
  /** By name, what waits for a connection. */
  readonly waiting: () => Iterable<readonly [name: string, requests: number]>
  readonly close: () => Promise<void>
}

interface Held {
  readonly name: string
  readonly upstream: UpstreamPool
  leases: number
}

export function createPools(): Pools {
  const held = new Map<string, Held>()
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
      const mine = new Map<string, Held>()
      return {
        upstream: (name, config, authority) => {
          const key = JSON.stringify([name, config, authority])
          let found = mine.get(key)
          if (found === undefined) {
            found = held.get(key) ?? {
              name,
              upstream: createUpstream(config, {
                tls: authority === undefined ? {} : { ca: authority }
              }),
              leases: 0
            }
            found.leases++
            mine.set(key, found)
            held.set(key, found)
          }
          return found.upstream
        },
        release: async () => {
          const over = [...mine].filter(([, one]) => --one.leases === 0)
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
