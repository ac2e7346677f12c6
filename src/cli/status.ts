/** `status`: the state of a running gateway and its config. */
import { jsonText } from './output.ts'
import type { Status } from '../process/status.ts'
import { type Command, CommandError } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin, table } from './admin-client.ts'
import { statusOfAll } from './status-of-all.ts'

export const status: Command = {
  summary: 'show the state of a running gateway: its config, revisions and faults',
  ways: [{ takes: ['all', 'json'] }],
  details: `
Asks a running gateway at its operators' address (ops.listen of the config folder).
With --all it says who runs what: all replicas that were seen within 10 s, also those
that do not answer.

Examples:
  console-gateway status
  console-gateway status --json | jq .files.state
  console-gateway status --all
Exit codes: 1 if no gateway answers, 3 if the config files were refused (also before a
rollback), or a replica does not answer.`,
  options: { all: { type: 'boolean', description: 'all replicas: who runs what' } },
  asksGateway: true,
  run: async ({ gateway, json, values: { all = false } }) => {
    if (all === true) return await statusOfAll(gateway, json)
    const response = (await askAdmin(gateway, '/status')) as unknown as Status
    if (response.files === undefined || response.revisions === undefined) {
      throw new CommandError('The response to /status is not that of a gateway of this version.')
    }
    process.stdout.write(json ? jsonText(response) : formatStatus(response))
    return response.files.faults === undefined ? 0 : 3
  }
}

function formatStatus({
  version,
  pid,
  workers = [],
  startedAt,
  ready,
  parts,
  upstreams,
  folder,
  generation,
  requests,
  draining,
  files,
  restartNeeded,
  revisions
}: Status): string {
  const rows = [
    ['gateway', `${version}, process ${pid}, since ${startedAt}, ${ready ? 'ready' : 'not ready'}`],
    ...Object.entries(parts).filter(([name]) => name !== 'config' && !name.startsWith('upstream ')),
    ...workers.map(each => [
      `worker ${each.worker}`,
      `process ${each.pid}, ${each.ready ? 'ready' : 'not ready'}`
    ]),
    ...upstreams.map(({ upstream, address, state, inFlight }) => [
      `upstream ${upstream}`,
      `${address} ${state}, ${inFlight} requests`
    ]),
    ['config', folder],
    ['files', formatFiles(files)],
    ['generation', `${generation}, ${requests} requests`],
    ...draining.map(old => ['draining', `generation ${old.generation}, ${old.requests} requests`]),
    ...(restartNeeded.length > 0 ? [['restart needed', restartNeeded.join(', ')]] : [])
  ]
  const width = Math.max(...rows.map(([name = '']) => name.length))
  const faults =
    files.faults !== undefined
      ? `\n${files.faults.map(fault => `${printable(fault)}\n`).join('')}`
      : ''
  const facts = rows
    .map(([name = '', value]) => `${printable(name.padEnd(width))}  ${printable(String(value))}\n`)
    .join('')
  const cells = revisions.map(({ number, at, hash, by, of, changes }) => [
    String(number),
    at,
    hash,
    of === undefined ? by : `${by} to ${of}`,
    brief(changes)
  ])
  return `${facts}${faults}\n${table([['REVISION', 'SINCE', 'HASH', 'BY', 'WHAT CHANGED'], ...cells])}`
}

function formatFiles(files: Status['files']): string {
  if (files.state === 'running') return 'the running config'
  if (files.state === 'refused') return `refused at ${files.since}`
  const faulty = files.faults === undefined ? '' : ', and refused'
  return `not the running config, since the rollback at ${files.since}${faulty}`
}

function brief(changes: readonly string[]) {
  return changes.length > 2
    ? `${changes.slice(0, 2).join('; ')}; and ${changes.length - 2} more`
    : changes.join('; ')
}
