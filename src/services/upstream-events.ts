import type { Metrics } from '../observability/metrics.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { UpstreamEvents } from '../proxy/upstream.ts'
import type { Log } from './logger.ts'

const reasons = {
  connect: 'no connection could be made; its requests go to others that work',
  request: 'requests failed; its requests go to others that work'
}

const waitBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const states = ['up', 'open', 'unhealthy'] as const

export function createUpstreamEvents(log: Log, metrics: Metrics) {
  const opened = metrics.counter(
    'console_gateway_upstream_address_opened_total',
    'How often so many requests to an address failed in a row that it is left out.',
    ['upstream']
  )
  const retries = metrics.counter(
    'console_gateway_upstream_retries_total',
    'Requests that were sent again, by kind: again after their connection broke, or elsewhere ' +
      'since there was no connection.',
    ['upstream', 'kind']
  )
  const waits = metrics.histogram(
    'console_gateway_upstream_queue_seconds',
    'How long requests waited for a connection to an upstream; those that got one at once are ' +
      'not counted.',
    ['upstream'],
    waitBuckets
  )
  return (upstream: string): UpstreamEvents => ({
    onWaited: ms => waits.labels(upstream).observe(ms / 1000),
    onAddress: (address, change, failure = 'request') => {
      if (change === 'open') opened.labels(upstream).inc()
      const line = { event: `upstream.address.${change}`, upstream, address }
      const text = `upstream ${upstream}: ${address}`
      if (change === 'closed') log.info(line, `${text} works again`)
      else if (change === 'healthy') log.info(line, `${text}: health checks pass`)
      else if (change === 'open') log.warn({ ...line, failure }, `${text}: ${reasons[failure]}`)
      else log.warn(line, `${text}: health checks fail`)
    },
    onRetry: kind => retries.labels(upstream, kind).inc()
  })
}

export function measureAddresses(metrics: Metrics, addresses: () => AddressUse[]): void {
  metrics.read({
    name: 'console_gateway_upstream_addresses',
    help: 'Addresses of an upstream, by state: up, open (requests failed), unhealthy.',
    labelNames: ['upstream', 'state'],
    read: () => {
      const upstreams = Map.groupBy(addresses(), ({ upstream }) => upstream)
      return [...upstreams].flatMap(([name, all]) =>
        states.map(
          each => [[name, each], all.filter(({ state }) => state === each).length] as const
        )
      )
    }
  })
}
