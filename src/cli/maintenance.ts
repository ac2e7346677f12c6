/** `maintenance`: closes routes for a time, through the listener of a running gateway. */
import { jsonText, printText } from './output.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { maintenanceInWords, type MaintenanceConfig } from '../config/schema/maintenance.ts'
import { askAdmin } from './admin-client.ts'
import type { Invocation } from './command.ts'

interface Shown {
  readonly info?: string
  readonly file: MaintenanceConfig | null
  readonly operators: ReadonlyArray<
    MaintenanceConfig & { readonly author: string; readonly since: string }
  >
  readonly replicas?: readonly string[]
  readonly silent?: readonly string[]
}

const path = '/ops/api/maintenance'

export async function maintenance({
  gateway,
  rest: [what = 'show'],
  values,
  json,
  io
}: Invocation): Promise<number> {
  const shown = (await askAdmin(gateway, ...requestOf(what, values))) as unknown as Shown
  if (json) io.stdout.write(jsonText(shown))
  else printText(inWords(shown), io)
  return (shown.silent ?? []).length > 0 ? 3 : 0
}

function requestOf(what: string, values: Invocation['values']): [path: string, body?: object] {
  if (what === 'show') return [path]
  const { until, message, route, method } = values
  if (what === 'end') return [`${path}/end`, route === undefined ? {} : { routes: route }]
  const roles = values['allow-role']
  const ms = toMilliseconds(String(until))
  return [
    path,
    {
      until: Number.isFinite(ms) ? new Date(Date.now() + ms).toISOString() : until,
      ...(message !== undefined && { message }),
      ...(route !== undefined && { routes: route }),
      ...(method !== undefined && { methods: method }),
      ...(roles !== undefined && { allowRoles: roles })
    }
  ]
}

function inWords({ info, file, operators, replicas, silent = [] }: Shown): string {
  const lines = [
    `routes.yaml: ${file === null ? 'closes nothing' : maintenanceInWords(file)}`,
    ...(operators.length === 0 ? ['operators: close nothing'] : []),
    ...operators.map(
      each => `operators: ${each.author} ${maintenanceInWords(each)}, since ${each.since}`
    ),
    ...(replicas === undefined ? [] : [`in force at ${replicas.join(', ')}`]),
    ...silent.map(id => `${id} did not confirm: it follows within a second, if it runs`),
    ...(info === undefined ? [] : [info])
  ]
  return lines.join('\n')
}
