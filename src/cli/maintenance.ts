/** `maintenance`: closes routes for a time, through the listener of a running gateway. */
import { jsonText, printText } from './output.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { maintenanceInWords } from '../config/schema/maintenance.ts'
import type { ShownMaintenance } from '../ops/schemas.ts'
import { askAdmin } from './admin-client.ts'
import type { Invocation } from './command.ts'

const path = '/ops/api/maintenance'

interface Values {
  readonly from?: string
  readonly until?: string
  readonly message?: string
  readonly route?: readonly string[]
  readonly method?: readonly string[]
  readonly allowRole?: readonly string[]
}

type Maintenance = Invocation<Values>

export async function showMaintenance(invocation: Maintenance): Promise<number> {
  return await askAndPrint(invocation, path)
}

export async function beginMaintenance(invocation: Maintenance): Promise<number> {
  const { from, until, message, route, method, allowRole } = invocation.values
  return await askAndPrint(invocation, path, {
    from: timeOf(from),
    until: timeOf(until),
    message,
    routes: route,
    methods: method,
    allowRoles: allowRole
  })
}

export async function endMaintenance(invocation: Maintenance): Promise<number> {
  return await askAndPrint(invocation, `${path}/end`, { routes: invocation.values.route })
}

async function askAndPrint(
  { gateway, json, io }: Maintenance,
  ...request: [path: string, body?: object]
): Promise<number> {
  const shown = (await askAdmin(gateway, ...request)) as unknown as ShownMaintenance
  if (json) io.stdout.write(jsonText(shown))
  else printText(inWords(shown), io)
  return 0
}

/** A time as it is; a duration from now on. */
function timeOf(value: string | undefined): string | undefined {
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
