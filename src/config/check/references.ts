/** Names in config: what they name exists, and each upstream and shape is named somewhere. */
import { errorKinds } from '../../errors/errors.ts'
import { nearest } from '../schema/faults.ts'
import type { NamedThing } from '../schema/node.ts'
import { endpointNames } from '../schema/own-endpoints.ts'
import type { CheckedConfig, Report } from './report.ts'

export function checkReferences(config: CheckedConfig, report: Report): void {
  const { upstreams, shapes, routes } = config.routes
  const routeNames = Object.keys(routes)
  // What names of files name is known when they are read.
  const existing: Partial<Record<NamedThing, readonly string[]>> = {
    'upstream': Object.keys(upstreams),
    'shape': Object.keys(shapes),
    'source': Object.keys(config.gateway.login.sources),
    'route in the ledger': routeNames,
    'route or endpoint': [...endpointNames, ...routeNames],
    'route or login': ['login', ...routeNames],
    'error code': Object.keys(errorKinds)
  }
  for (const { what, name, path } of config.named) {
    const names = existing[what]
    if (names === undefined || names.includes(name)) continue
    const [noun = ''] = what.split(/ (?:or|in) /)
    // The ledger's routes stand in gateway.yaml, which needs a restart; routes do not.
    const how = { warning: what === 'route in the ledger' }
    report(path, `there is no ${noun} "${name}".${nearest(name, names)}`, how)
  }
  for (const what of ['upstream', 'shape'] as const) {
    const used = new Set(config.named.flatMap(each => (each.what === what ? [each.name] : [])))
    for (const name of existing[what]?.filter(each => !used.has(each)) ?? []) {
      report([`${what}s`, name], `no route uses this ${what}`, { warning: true })
    }
  }
}

/** The upstreams of the running process's sources, whose names do not stand in the files. */
export function checkRunningSources(
  { gateway: { login }, routes: { upstreams } }: Pick<CheckedConfig, 'gateway' | 'routes'>,
  report: Report
): void {
  for (const [name, source] of Object.entries(login.sources)) {
    if (source.kind !== 'upstream-login' || Object.hasOwn(upstreams, source.upstream)) continue
    report(['login', 'sources', name, 'upstream'], `there is no upstream "${source.upstream}".`)
  }
}
