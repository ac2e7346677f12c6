/** Views of the gateway's state: what readiness says of its parts, and its status. */
import type { AddressUse } from '../proxy/pools.ts'
import type { GatewayState } from '../services/gateway-state.ts'

export const stateTexts = {
  up: 'works',
  open: 'does not work: requests failed',
  unhealthy: 'does not work: health checks fail'
}

export function partsOf(state: GatewayState): Readonly<Record<string, string>> {
  const { phase, config, redis, ledger, maintenance, upstreams, sourceFaults } = state
  const byUpstream = Map.groupBy(upstreams, ({ upstream }) => upstream)
  const parts = {
    gateway: phase === 'serving' ? '' : phase,
    maintenance: maintenance.map(({ author, detail }) => `${author} ${detail}`).join('; '),
    sessions: redis === undefined ? 'in this process' : '',
    config: configText(config),
    redis: redisText(redis),
    audit: ledgerText(ledger),
    ...Object.fromEntries(
      sourceFaults.map(({ source, since, reason }) => [
        `sign-in ${source}`,
        `does not answer since ${new Date(since).toISOString()}: ${reason}`
      ])
    ),
    ...Object.fromEntries(
      Array.from(byUpstream, ([name, all]) => [`upstream ${name}`, upstreamText(all)])
    )
  }
  return Object.fromEntries(Object.entries(parts).filter(([, text]) => text !== ''))
}

/** With refused files a replica stays ready, since it runs the last good config. */
function configText({ files, generation }: GatewayState['config']): string {
  if (files.state === 'running') return ''
  const { since, faults } = files
  return `generation ${generation} runs; the files were refused at ${since}: ${faults[0]}`
}

function redisText(redis: GatewayState['redis']): string {
  if (redis === undefined) return ''
  const { up, hasConnected, fault = 'up' } = redis
  if (up) return fault
  return hasConnected ? 'away: what needs a session answers 503' : 'not reached yet'
}

function ledgerText(ledger: GatewayState['ledger']): string {
  const { failing, headFailing, waiting, lost } = ledger ?? {}
  if (failing !== undefined) {
    const since = new Date(failing.since).toISOString()
    return `cannot be written since ${since} (${failing.reason}): ${waiting} entries wait, ${lost} lost`
  }
  return headFailing === undefined ? '' : `its head cannot be stored: ${headFailing}`
}

function upstreamText(all: readonly AddressUse[]): string {
  const down = all.filter(({ state }) => state !== 'up')
  if (down.length === 0) return ''
  const list = down.map(({ address, state }) => `${address} ${stateTexts[state]}`).join(', ')
  return `degraded, ${down.length} of ${all.length} addresses: ${list}`
}

export function statusOf(state: GatewayState) {
  const { version, startedAt, ready, upstreams, config } = state
  return {
    version,
    node: process.version,
    pid: process.pid,
    startedAt,
    ready,
    parts: partsOf(state),
    upstreams,
    ...config
  }
}
