import type { ShownMaintenance } from '../../ops/maintenance.ts'
import type { CliCommand, Shown } from '../command.ts'

interface Values {
  readonly from?: string
  readonly until?: string
  readonly message?: string
  readonly route?: readonly string[]
  readonly method?: readonly string[]
  readonly allowRole?: readonly string[]
}

const path = '/maintenance'

export function addMaintenance(program: CliCommand): void {
  const maintenance = program
    .subcommand('maintenance', 'show what is closed, close routes for a time, and open them again')
    .details(`
A time is such as 2026-12-01T06:00:00Z, or a duration from now such as 30m; at most 7 days
ahead. Without --route all routes are meant, without --method all methods. The same
routes and methods again take the new end and message.`)
    .examples(`console-gateway maintenance begin --until 30m --message 'Back at 06:00.'`)
  maintenance
    .subcommand('show', 'what is closed (the default)', { isDefault: true })
    .asks(() => [path], shown)
  maintenance
    .subcommand('begin', 'close routes')
    .requiredOption('--until <time>', 'the end')
    .option('--from <time>', 'the beginning; at once without it')
    .option('--message <text>', 'the message for users')
    .repeatable('--route <route>', 'a route to close')
    .repeatable('--method <method>', 'a method to close')
    .repeatable('--allow-role <role>', 'users with this role go on')
    .asks<ShownMaintenance, Values>(async ({ values }) => {
      const { from, until, message, route: routes, method: methods, allowRole: allowRoles } = values
      const { timeOf } = await import('../ask.ts')
      const times = { from: timeOf(from), until: timeOf(until) }
      return [path, { body: { ...times, message, routes, methods, allowRoles } }]
    }, shown)
  maintenance
    .subcommand('end', 'open routes again')
    .repeatable('--route <route>', 'a route to open')
    .asks<ShownMaintenance, Values>(
      ({ values }) => [`${path}/end`, { body: { routes: values.route } }],
      shown
    )
}

async function shown({ info, operators }: ShownMaintenance): Promise<Shown> {
  const { maintenanceInWords } = await import('../../services/maintenance.ts')
  const lines = operators.map(
    each => `${each.author} ${maintenanceInWords(each)}, since ${each.since}`
  )
  if (operators.length === 0) lines.push('Nothing is closed.')
  lines.push(info ?? 'in force at all replicas within a second')
  return { text: lines.join('\n') }
}
