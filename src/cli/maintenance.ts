import { amountOf } from '../config/schema/primitives.ts'
import { printableLines } from '../observability/unprintable.ts'
import type { ShownMaintenance } from '../ops/maintenance.ts'
import { maintenanceInWords } from '../services/maintenance.ts'
import { askAndPrint } from './ask.ts'
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

export async function showMaintenance(invocation: Maintenance): Promise<void> {
  await askAndPrint(invocation, [path], inWords)
}

export async function beginMaintenance(invocation: Maintenance): Promise<void> {
  const { from, until, message, route, method, allowRole } = invocation.values
  const body = {
    from: timeOf(from),
    until: timeOf(until),
    message,
    routes: route,
    methods: method,
    allowRoles: allowRole
  }
  await askAndPrint(invocation, [path, body], inWords)
}

export async function endMaintenance(invocation: Maintenance): Promise<void> {
  await askAndPrint(invocation, [`${path}/end`, { routes: invocation.values.route }], inWords)
}

function timeOf(value: string | undefined): string | undefined {
  const ms = amountOf('x-duration', String(value))
  return Number.isFinite(ms) ? new Date(Date.now() + ms).toISOString() : value
}

function inWords({ info, operators }: ShownMaintenance): string {
  const lines = operators.map(
    each => `${each.author} ${maintenanceInWords(each)}, since ${each.since}`
  )
  if (operators.length === 0) lines.push('Nothing is closed.')
  lines.push(info ?? 'in force at all replicas within a second')
  return `${printableLines(lines.join('\n'))}\n`
}
