/** Names in config: what they name exists, and each upstream and shape is named somewhere. */
import { errorKinds } from '../../errors/errors.ts'
import { isRecord, type JsonRecord } from '../../json/values.ts'
import type { Named } from '../schema/config.ts'
import { nearest } from '../schema/faults.ts'
import type { NamedThing } from '../schema/node.ts'
import { endpointNames } from '../schema/own-endpoints.ts'
import type { CheckedConfig, Report } from './report.ts'

/** @param config may have faults */
export function checkNames(named: readonly Named[], config: JsonRecord, report: Report): void {
  const existing = namesIn(config)
  for (const { what, name, path } of named) {
    const names = existing[what]
    if (names === undefined || names.includes(name)) continue
    const [noun = ''] = what.split(' or ')
    report('routes', path, `there is no ${noun} "${name}".${nearest(name, names)}`)
  }
}

/** Warns of upstreams and shapes that nothing names. */
export function checkUnused(named: readonly Named[], config: JsonRecord, report: Report): void {
  const existing = namesIn(config)
  for (const what of ['upstream', 'shape'] as const) {
    const used = new Set(named.flatMap(each => (each.what === what ? [each.name] : [])))
    for (const name of existing[what]?.filter(each => !used.has(each)) ?? []) {
      report('routes', [`${what}s`, name], `no route uses this ${what}`, 'warning')
    }
  }
}

/** What names of files name is known when they are read. */
function namesIn(config: JsonRecord): Partial<Record<NamedThing, readonly string[]>> {
  const keysOf = (mapping: unknown) => (isRecord(mapping) ? Object.keys(mapping) : [])
  const routes = keysOf(config['routes'])
  return {
    'upstream': keysOf(config['upstreams']),
    'shape': keysOf(config['shapes']),
    'route or endpoint': [...endpointNames, ...routes],
    'route or login': ['login', ...routes],
    'error code': Object.keys(errorKinds)
  }
}

/** The upstreams of the running process's sources, whose names do not stand in the files. */
export function checkRunningSources(
  { gateway: { login }, routes: { upstreams } }: Pick<CheckedConfig, 'gateway' | 'routes'>,
  report: Report
): void {
  for (const [name, source] of Object.entries(login.sources)) {
    if (source.kind !== 'upstream-login' || Object.hasOwn(upstreams, source.upstream)) continue
    const message = `there is no upstream "${source.upstream}".`
    report('gateway', ['login', 'sources', name, 'upstream'], message)
  }
}
