/** Views of the gateway's state: its dependencies, what readiness says of them, its status. */
import type { LedgerStatus } from '../observability/audit/ledger.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { GatewayState } from '../services/gateway-state.ts'

/** States of an address, for people. */
export const stateTexts = {
  up: 'works',
  open: 'does not work: requests failed',
  unhealthy: 'does not work: health checks fail'
}

interface Dependency {
  readonly kind: 'config' | 'redis' | 'upstream' | 'audit' | 'maintenance'
  readonly name: string
  readonly state: 'up' | 'degraded' | 'down'
  /** ISO 8601; missing where it has been so since the start. */
  readonly since?: string
  /** What is worth a word, for people. */
  readonly detail?: string
  readonly addresses?: ReadonlyArray<Record<'address' | 'state' | 'since', string>>
}

const iso = (ms: number) => new Date(ms).toISOString()

/** Lists the dependencies of the gateway: each is up, degraded or down, and since when. */
export function dependenciesOf(state: GatewayState): Dependency[] {
  const { config, redis, ledger, maintenance, upstreams } = state
  const byUpstream = Map.groupBy(upstreams, ({ upstream }) => upstream)
  return [
    configHealth(config),
    ...(redis === undefined ? [] : [redisHealth(redis)]),
    ...(ledger === undefined ? [] : [ledgerHealth(ledger)]),
    ...maintenance.map((each): Dependency => ({ kind: 'maintenance', state: 'degraded', ...each })),
    ...[...byUpstream].map(([name, all]) => upstreamHealth(name, all))
  ]
}

/** The state of each part that is worth a word. */
export function partsOf(state: GatewayState): Readonly<Record<string, string>> {
  const { phase, redis, maintenance } = state
  const closed = maintenance.map(({ name, detail }) => `${name} ${detail}`).join('; ')
  const parts = dependenciesOf(state).flatMap(({ kind, name, detail }) => {
    if (detail === undefined || kind === 'maintenance') return []
    return [[kind === 'upstream' ? `upstream ${name}` : name, detail]]
  })
  return {
    ...(phase !== 'serving' && { gateway: phase }),
    ...(closed !== '' && { maintenance: closed }),
    ...(redis === undefined && { sessions: 'in this process' }),
    ...(Object.fromEntries(parts) as Readonly<Record<string, string>>)
  }
}

/** With refused files a replica stays ready, since it runs the last good config. */
function configHealth({ files, generation }: GatewayState['config']): Dependency {
  const of = { kind: 'config', name: 'config' } as const
  if (files.state === 'running') return { ...of, state: 'up' }
  const { since, faults } = files
  const [fault = ''] = faults
  const detail = `generation ${generation} runs; the files were refused at ${since}: ${fault}`
  return { ...of, state: 'degraded', since, detail }
}

function redisHealth(redis: NonNullable<GatewayState['redis']>): Dependency {
  const { up, hasConnected, fault = 'up', since } = redis
  const away = hasConnected ? 'away: what needs a session answers 503' : 'not reached yet'
  const of = { kind: 'redis', name: 'redis', since: iso(since) } as const
  return up ? { ...of, state: 'up', detail: fault } : { ...of, state: 'down', detail: away }
}

function ledgerHealth({ failing, headFailing, waiting, lost }: LedgerStatus): Dependency {
  const of = { kind: 'audit', name: 'audit' } as const
  if (failing !== undefined) {
    const since = iso(failing.since)
    const counts = `${waiting} entries wait, ${lost} lost`
    const detail = `cannot be written since ${since} (${failing.reason}): ${counts}`
    return { ...of, state: 'degraded', since, detail }
  }
  if (headFailing === undefined) return { ...of, state: 'up' }
  return { ...of, state: 'degraded', detail: `its head cannot be stored: ${headFailing}` }
}

/** Down since its last address failed, degraded since the first, up since the last came back. */
function upstreamHealth(name: string, all: readonly AddressUse[]): Dependency {
  const down = all.filter(({ state }) => state !== 'up')
  const isDegraded = down.length > 0 && down.length < all.length
  const changes = isDegraded ? down : all
  const times = changes.map(({ since }) => since)
  const list = down.map(({ address, state }) => `${address} ${stateTexts[state]}`).join(', ')
  return {
    kind: 'upstream',
    name,
    state: stateOf(down.length, all.length),
    since: iso(isDegraded ? Math.min(...times) : Math.max(...times)),
    ...(down.length > 0 && {
      detail: `degraded, ${down.length} of ${all.length} addresses: ${list}`
    }),
    addresses: all.map(({ address, state, since: at }) => ({ address, state, since: iso(at) }))
  }
}

function stateOf(failed: number, total: number): Dependency['state'] {
  if (failed === 0) return 'up'
  return failed === total ? 'down' : 'degraded'
}

/** The answer to `status`: who runs which config, and which part fails. */
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
