/** The gateway's dependencies, for operators: up, degraded or down, and since when. */
export type Health = 'up' | 'degraded' | 'down'

export interface Dependency {
  readonly kind: 'config' | 'redis' | 'upstream' | 'audit' | 'maintenance'
  readonly name: string
  readonly state: Health
  /** ISO 8601; missing where it has been so since the start. */
  readonly since?: string
  readonly detail?: string
  readonly addresses?: ReadonlyArray<{
    readonly address: string
    readonly state: string
    readonly since: string
  }>
}

/** The state of what the gateway depends on. */
export interface Dependencies {
  /** Undefined for a process without Redis. */
  readonly redis?: { readonly state: Health; readonly since: number } | undefined
  readonly config?: Pick<Dependency, 'state' | 'since' | 'detail'>
  /** The audit ledger; undefined where config has none. */
  readonly audit?: Pick<Dependency, 'state' | 'since' | 'detail'>
  /** Each maintenance in force, by its author: an operator or `routes.yaml`. */
  readonly maintenance?: ReadonlyArray<Pick<Dependency, 'name' | 'since' | 'detail'>>
  /** The addresses of upstreams, for operators. */
  readonly upstreams?: readonly AddressStatus[]
}

interface AddressStatus {
  readonly upstream: string
  readonly address: string
  readonly state: string
  readonly inFlight: number
  /** The last change between in and out of use, in milliseconds since the epoch. */
  readonly since: number
}

const iso = (ms: number) => new Date(ms).toISOString()

export function dependenciesOf(dependencies: Dependencies): Dependency[] {
  const { redis, config, audit, maintenance = [], upstreams = [] } = dependencies
  const names = [...new Set(upstreams.map(({ upstream }) => upstream))]
  return [
    ...(config === undefined ? [] : [{ kind: 'config' as const, name: 'config', ...config }]),
    ...(redis === undefined
      ? []
      : [{ kind: 'redis' as const, name: 'redis', state: redis.state, since: iso(redis.since) }]),
    ...(audit === undefined ? [] : [{ kind: 'audit' as const, name: 'audit', ...audit }]),
    ...maintenance.map(each => ({
      kind: 'maintenance' as const,
      state: 'degraded' as const,
      ...each
    })),
    ...names.map(name =>
      upstreamOf(
        name,
        upstreams.filter(({ upstream }) => upstream === name)
      )
    )
  ]
}

/** Down since its last address failed, degraded since the first, up since the last came back. */
function upstreamOf(name: string, all: readonly AddressStatus[]): Dependency {
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
