/** Log lines and metrics of the addresses of upstreams, and the list of degraded ones. */
import type { Metrics } from '../observability/metrics.ts'
import type { AddressEvents } from '../proxy/address-set.ts'
import type { Transition } from '../proxy/address-state.ts'
import type { AddressStatus } from '../proxy/pools.ts'
import type { Log } from './logger.ts'

const reasons = {
  connect: 'no connection could be made',
  request: 'requests failed'
}

/** Seconds. */
const waitBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const states = ['up', 'open', 'trial', 'unhealthy'] as const

/** A line for each change of a state, but none of the trials that go on while it is down. */
export function createUpstreamEvents(
  log: Log,
  metrics: Metrics
): (upstream: string) => AddressEvents {
  const opened = metrics.counter(
    'console_gateway_upstream_address_opened_total',
    'How often an address of an upstream was left out since it failed.',
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
  return upstream => ({
    onWaited: ms => waits.with(upstream).observe(ms / 1000),
    onTransition: (address, transition) => {
      if (transition.to === 'open' && transition.isAgain !== true) opened.with(upstream).inc()
      logTransition(log, { upstream, address }, transition)
    },
    onMoved: addresses =>
      log.info(
        { event: 'upstream.moved', upstream, addresses },
        `upstream ${upstream}: its name stands for ${addresses.length} addresses now`
      ),
    onUnresolved: (name, err) =>
      log.warn(
        { event: 'upstream.unresolved', upstream, name, err },
        `upstream ${upstream}: its name cannot be resolved; what it stood for stays in use`
      ),
    onRetry: kind => retries.with(upstream, kind).inc()
  })
}

function logTransition(
  log: Log,
  place: { readonly upstream: string; readonly address: string },
  { to, openMs = 0, isAgain, failure }: Transition
): void {
  const line = { event: `upstream.address.${to}`, ...place }
  const text = `upstream ${place.upstream}: ${place.address}`
  if (to === 'open') {
    const seconds = Math.ceil(openMs / 100) / 10
    const level = isAgain === true ? 'debug' : 'warn'
    const reason = reasons[failure ?? 'request']
    log[level](
      { ...line, seconds, failure },
      `${text} gets no requests for ${seconds} s: ${reason}`
    )
  } else if (to === 'trial') log.debug(line, `${text} is tried`)
  else if (to === 'closed') log.info(line, `${text} gets requests again`)
  else if (to === 'unhealthy') log.warn(line, `${text} gets no requests: health checks fail`)
  else log.info(line, `${text}: health checks pass`)
}

export function measureAddresses(metrics: Metrics, addresses: () => AddressStatus[]): void {
  metrics.read(
    'console_gateway_upstream_addresses',
    'Addresses of an upstream, by state: up, open (left out), trial, unhealthy.',
    ['upstream', 'state'],
    () => {
      const all = addresses()
      const names = [...new Set(all.map(({ upstream }) => upstream))]
      return names.flatMap(name =>
        states.map((each): [string[], number] => {
          const inState = all.filter(({ upstream, state }) => upstream === name && state === each)
          return [[name, each], inState.length]
        })
      )
    }
  )
}

/** Upstreams with addresses that get no requests, for people. They make no replica unready. */
export function degradedUpstreams(addresses: readonly AddressStatus[]): Record<string, string> {
  const degraded: Record<string, string> = {}
  for (const name of new Set(addresses.map(({ upstream }) => upstream))) {
    const all = addresses.filter(({ upstream }) => upstream === name)
    const down = all.filter(({ state }) => state !== 'up')
    if (down.length === 0) continue
    const list = down.map(({ address, state }) => `${address} is ${state}`).join(', ')
    degraded[`upstream ${name}`] = `degraded, ${down.length} of ${all.length} addresses: ${list}`
  }
  return degraded
}
