import type { Cluster, Command, Redis } from 'ioredis'
import type { Metrics } from '../observability/metrics.ts'

export type RedisUse = 'sessions' | 'limits'

const buckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1
]

export function measureRedis(metrics: Metrics): (client: Redis | Cluster, use: RedisUse) => void {
  const times = metrics.histogram(
    'console_gateway_redis_command_seconds',
    'From a command to the reply of Redis, by use (sessions, limits) and outcome: ok, or failed, ' +
      'such as when Redis is away.',
    ['use', 'outcome'],
    buckets
  )
  return (client, use) => {
    const ok = times.labels(use, 'ok')
    const failed = times.labels(use, 'failed')
    const send = client.sendCommand.bind(client)
    client.sendCommand = (command: Command, ...rest: never[]) => {
      const startedAt = performance.now()
      const sent = send(command, ...rest)
      command.promise.then(
        () => ok.observe((performance.now() - startedAt) / 1000),
        () => failed.observe((performance.now() - startedAt) / 1000)
      )
      return sent
    }
  }
}
