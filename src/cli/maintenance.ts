/** `maintenance`: closes routes for a time, through the listener of a running gateway. */
import { jsonText, printText } from './output.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { maintenanceInWords } from '../config/schema/maintenance.ts'
import type { ShownMaintenance } from '../ops/schemas.ts'
import { askAdmin } from './admin-client.ts'
import type { Invocation } from './command.ts'

const path = '/ops/api/maintenance'

export async function maintenance({
  gateway,
  rest: [what = 'show'],
  values,
  json,
  io
}: Invocation): Promise<number> {
  const shown = (await askAdmin(gateway, ...requestOf(what, values))) as unknown as ShownMaintenance
  if (json) io.stdout.write(jsonText(shown))
  else printText(inWords(shown), io)
  return 0
}

function requestOf(what: string, values: Invocation['values']): [path: string, body?: object] {
  if (what === 'show') return [path]
  const { from, until, message, route, method } = values
  if (what === 'end') return [`${path}/end`, route === undefined ? {} : { routes: route }]
  const roles = values['allow-role']
  return [
    path,
    {
      ...(from !== undefined && { from: timeOf(from) }),
      until: timeOf(until),
      ...(message !== undefined && { message }),
      ...(route !== undefined && { routes: route }),
      ...(method !== undefined && { methods: method }),
      ...(roles !== undefined && { allowRoles: roles })
    }
  ]
}

/** A time as it is; a duration from now on. */
function timeOf(value: Invocation['values'][string]) {
  const ms = toMilliseconds(String(value))
  return Number.isFinite(ms) ? new Date(Date.now() + ms).toISOString() : value
}

function inWords({ shared, info, file, operators }: ShownMaintenance): string {
  const lines = [
    `routes.yaml: ${file === null ? 'closes nothing' : maintenanceInWords(file)}`,
    ...(operators.length === 0 ? ['operators: close nothing'] : []),
    ...operators.map(
      each => `operators: ${each.author} ${maintenanceInWords(each)}, since ${each.since}`
    ),
    ...(shared ? ['in force at all replicas within a second'] : []),
    ...(info === undefined ? [] : [info])
  ]
  return lines.join('\n')
}
