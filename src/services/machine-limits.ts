/** Limits that all workers of this machine count together: leases of their primary. */
import type { RedisConfig } from '../config/schema/gateway.ts'
import { tallyWithFallback } from '../limits/counting/fallback-tally.ts'
import { createMemoryTally } from '../limits/counting/memory-tally.ts'
import { createRedisTally } from '../limits/counting/redis-tally.ts'
import { createReplicas } from '../limits/counting/replicas.ts'
import { SharedLeases } from '../limits/counting/shared-leases.ts'
import type { Metrics } from '../observability/metrics.ts'
import { measureLocal } from './limits.ts'
import { createRedisDialler } from './redis.ts'
import { measureRedis } from './redis-times.ts'

export interface MachineLeases {
  readonly leases: SharedLeases
  /** Machines that share the counters, and single processes. */
  readonly replicas: () => number
  readonly close: () => Promise<void>
}

interface Options {
  readonly redis: RedisConfig
  /** Of the config: paths of certificates are relative to it. */
  readonly folder: string
  readonly metrics: Metrics
  readonly workers: number
  /** Called when a worker has to give back what is left of its part of a key. */
  readonly recall: (worker: number, key: string) => void
}

export function openMachineLeases(options: Options): MachineLeases {
  const { redis: config, folder, metrics, workers, recall } = options
  const { prefix } = config
  const dialler = createRedisDialler(config, folder)
  // Workers log how Redis is.
  const redis = dialler.client({ onUp: () => {}, onDown: () => {} })
  measureRedis(metrics)(redis, 'limits')
  const { count: replicas, isAlone, close: leave } = createReplicas(redis, prefix)
  const tally = tallyWithFallback({
    shared: createRedisTally(redis, prefix),
    local: createMemoryTally(),
    replicas,
    onAway: measureLocal(metrics)
  })
  const leases = new SharedLeases({ tally, replicas, isAlone, borrowers: workers, recall })
  return {
    leases,
    replicas,
    close: async () => {
      await leases.close()
      await leave()
      redis.disconnect()
      dialler.close()
    }
  }
}
