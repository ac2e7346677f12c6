/** `maintenance`: closes routes for a time, through the listener of a running gateway. */
import { jsonText, printText } from './output.ts'
import { toMilliseconds } from '../config/schema/primitives.ts'
import { maintenanceInWords, type MaintenanceConfig } from '../config/schema/maintenance.ts'
import { askAdmin } from './admin-client.ts'
import type { Command, Invocation } from './command.ts'

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

export const maintenance: Command = {
  summary: 'show what is closed, close routes for a time, and open them again',
  ways: [
    { words: '[show]', takes: ['json'] },
    {
      words: 'begin',
      needs: ['until'],
      takes: ['message', 'route', 'method', 'allow-role', 'json']
    },
    { words: 'end', takes: ['route', 'json'] }
  ],
  details: `
Without Redis it is in force in the process that is asked; with Redis at all
replicas, also across reloads and restarts, until its end. maintenance of
routes.yaml stays in force beside it.

TIME is a time such as 2026-12-01T06:00:00Z, or a duration such as 30m; at most 7
days ahead. Without --route all routes of routes.yaml are closed, without --method
all methods. What is closed already stays closed; a route that is named again takes
the new end and message. end opens everything, end --route only these routes.

Examples:
  console-gateway maintenance begin --until 30m --message 'Back at 06:00.'
  console-gateway maintenance begin --until 2h --method POST --method PUT
  console-gateway maintenance begin --until 1h --route orders
  console-gateway maintenance end --route orders
  console-gateway maintenance end
Exit codes: 1 if it was refused or no gateway answers, 3 if a replica did not confirm.`,
  options: {
    'until': { type: 'string', value: 'TIME', description: 'the end, or for how long' },
    'message': { type: 'string', value: 'TEXT', description: 'the message for users' },
    'route': {
      type: 'string',
      value: 'NAME',
      multiple: true,
      description: 'a route to close, or to open; may be repeated'
    },
    'method': {
      type: 'string',
      value: 'METHOD',
      multiple: true,
      description: 'a method to close; may be repeated'
    },
    'allow-role': {
      type: 'string',
      value: 'ROLE',
      multiple: true,
      description: 'users with this role go on; may be repeated'
    }
  },
  asksGateway: true,
  run: async ({ gateway, rest: [what = 'show'], values, json }) => {
    const shown = (await askAdmin(gateway, ...requestOf(what, values))) as unknown as Shown
    if (json) process.stdout.write(jsonText(shown))
    else printText(inWords(shown))
    return (shown.silent ?? []).length > 0 ? 3 : 0
  }
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
