/** Names in config: what they name exists, and each upstream and shape is named somewhere. */
import { errorKinds } from '../../errors/errors.ts'
import { isRecord } from '../../json/values.ts'
import type { Named, CheckedConfig, Report } from '../schema/config.ts'
import { nearest } from '../schema/faults.ts'
import type { NamedThing } from '../schema/node.ts'
import { endpointNames } from '../schema/own-endpoints.ts'

type Existing = Partial<Record<NamedThing, readonly string[]>>

/** Of a tree that may have faults. What names of files name is known when they are read. */
export function namesIn(tree: Readonly<Record<string, unknown>>): Existing {
  const keysOf = (section: string) => Object.keys(isRecord(tree[section]) ? tree[section] : {})
  const routes = keysOf('routes')
  return {
    'upstream': keysOf('upstreams'),
    'shape': keysOf('shapes'),
    'route in the ledger': routes,
    'route or endpoint': [...endpointNames, ...routes],
    'route or login': ['login', ...routes],
    'error code': Object.keys(errorKinds)
  }
}

export function checkNamed(named: readonly Named[], existing: Existing, report: Report): void {
  for (const { what, name, path } of named) {
    const names = existing[what]
    if (names === undefined || names.includes(name)) continue
    const [noun = ''] = what.split(/ (?:or|in) /)
    // The ledger's routes stand in gateway.yaml, which needs a restart; routes do not.
    const how = { warning: what === 'route in the ledger' }
    report(path, `there is no ${noun} "${name}".${nearest(name, names)}`, how)
  }
}

export function checkReferences(config: CheckedConfig, report: Report): void {
  const { named, gateway } = config
  const existing = { ...namesIn(config.routes), source: Object.keys(gateway.login.sources) }
  checkNamed(named, existing, report)
  for (const what of ['upstream', 'shape'] as const) {
    const used = new Set(named.flatMap(each => (each.what === what ? [each.name] : [])))
    for (const name of existing[what]?.filter(each => !used.has(each)) ?? []) {
      report([`${what}s`, name], `no route uses this ${what}`, { warning: true })
    }
  }
}
