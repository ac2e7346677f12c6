/** Views of the gateway's state: what readiness says, its dependencies, its status. */
import type { LedgerStatus } from '../observability/audit/ledger.ts'
import type { AddressStatus, GatewayState } from '../observability/gateway-state.ts'

/** States of an address, for people. */
export const stateTexts = {
  up: 'works',
  open: 'does not work: requests failed',
  unhealthy: 'does not work: health checks fail'
}

const iso = (ms: number) => new Date(ms).toISOString()

const ledgerText = ({ reason }: { readonly reason: string }, { waiting, lost }: LedgerStatus) =>
  `(${reason}): ${waiting} entries wait, ${lost} lost`

const byUpstream = ({ upstreams }: Pick<GatewayState, 'upstreams'>) => [
  ...Map.groupBy(upstreams, ({ upstream }) => upstream)
]

/** The state of each part that is worth a word, for people. */
export function partsOf(state: GatewayState): Readonly<Record<string, string>> {
  const { phase, config, redis, ledger, maintenance } = state
  const closed = maintenance.map(({ name, detail }) => `${name} ${detail}`).join('; ')
  return {
    ...(phase !== 'serving' && { gateway: phase }),
    ...configPart(config),
    ...(ledger?.failing !== undefined && {
      audit: `cannot be written since ${iso(ledger.failing.since)} ${ledgerText(ledger.failing, ledger)}`
    }),
    ...(closed !== '' && { maintenance: closed }),
    ...(redis === undefined ? { sessions: 'in this process' } : { redis: redisText(redis) }),
    ...Object.fromEntries(
      byUpstream(state).flatMap(([name, all]) => {
        const down = all.filter(each => each.state !== 'up')
        if (down.length === 0) return []
        const list = down.map(each => `${each.address} ${stateTexts[each.state]}`).join(', ')
        const text = `degraded, ${down.length} of ${all.length} addresses: ${list}`
        return [[`upstream ${name}`, text]]
      })
    )
  }
}

/** Information only: with refused files a replica stays ready, since it runs the last good config. */
function configPart({ files, generation }: GatewayState['config']) {
  if (files.state === 'running') return {}
  const [fault = ''] = files.faults
  return {
    config: `generation ${generation} runs; the files were refused at ${files.since}: ${fault}`
  }
}

function redisText({ up, hasConnected, fault }: NonNullable<GatewayState['redis']>): string {
  if (up) return fault ?? 'up'
  return hasConnected ? 'away: what needs a session answers 503' : 'not reached yet'
}

type Health = 'up' | 'degraded' | 'down'

interface Dependency {
  readonly kind: 'config' | 'redis' | 'upstream' | 'audit' | 'maintenance'
  readonly name: string
  readonly state: Health
  /** ISO 8601; missing where it has been so since the start. */
  readonly since?: string
  readonly detail?: string
  readonly addresses?: ReadonlyArray<Record<'address' | 'state' | 'since', string>>
}

/** Lists the dependencies of the gateway: each is up, degraded or down, and since when. */
export function dependenciesOf(state: GatewayState): Dependency[] {
  const { config, redis, ledger, maintenance } = state
  return [
    configHealth(config.files),
    ...(redis === undefined ? [] : [redisHealth(redis)]),
    ...(ledger === undefined ? [] : [ledgerHealth(ledger)]),
    ...maintenance.map((each): Dependency => ({ kind: 'maintenance', state: 'degraded', ...each })),
    ...byUpstream(state).map(([name, all]) => upstreamHealth(name, all))
  ]
}

function configHealth(files: GatewayState['config']['files']): Dependency {
  const of = { kind: 'config', name: 'config' } as const
  if (files.state === 'running') return { ...of, state: 'up' }
  return { ...of, state: 'degraded', since: files.since, detail: 'the files were refused' }
}

function redisHealth({ up, since }: NonNullable<GatewayState['redis']>): Dependency {
  return { kind: 'redis', name: 'redis', state: up ? 'up' : 'down', since: iso(since) }
}

function ledgerHealth(status: LedgerStatus): Dependency {
  const { failing, headFailing } = status
  const of = { kind: 'audit', name: 'audit' } as const
  if (failing !== undefined) {
    const detail = `cannot be written ${ledgerText(failing, status)}`
    return { ...of, state: 'degraded', since: iso(failing.since), detail }
  }
  if (headFailing === undefined) return { ...of, state: 'up' }
  return { ...of, state: 'degraded', detail: `its head cannot be stored: ${headFailing}` }
}

/** Down since its last address failed, degraded since the first, up since the last came back. */
function upstreamHealth(name: string, all: readonly AddressStatus[]): Dependency {
  const down = all.filter(({ state }) => state !== 'up')
  const isDegraded = down.length > 0 && down.length < all.length
  const since = isDegraded
    ? Math.min(...down.map(each => each.since))
    : Math.max(...all.map(each => each.since))
  return {
    kind: 'upstream',
    name,
    state: stateOf(all.length - down.length, all.length),
    since: iso(since),
    addresses: all.map(({ address, state, since: at }) => ({ address, state, since: iso(at) }))
  }
}

function stateOf(working: number, total: number): Health {
  if (working === total) return 'up'
  return working === 0 ? 'down' : 'degraded'
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
