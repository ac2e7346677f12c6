/** `status`: the state of a running gateway and its config. */
import { jsonText } from './output.ts'
import type { Status } from '../process/status.ts'
import { CommandError, type Invocation, type Output } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin, table } from './admin-client.ts'
import { statusOfAll } from './status-of-all.ts'

export async function status({
  gateway,
  json,
  values: { all = false },
  io
}: Invocation): Promise<number> {
  if (all === true) return await statusOfAll(gateway, json, io.stdout)
  const response = (await askAdmin(gateway, '/ops/api/status')) as unknown as Status
  if (response.files === undefined || response.revisions === undefined) {
    throw new CommandError('The response to /ops/api/status is not that of a gateway.')
  }
  io.stdout.write(json ? jsonText(response) : formatStatus(response, io.stdout))
  return response.files.faults === undefined ? 0 : 3
}

function formatStatus(shown: Status, stream: Output): string {
  const { version, pid, startedAt, ready, parts, upstreams, folder } = shown
  const { generation, requests, draining, files, restartNeeded, revisions } = shown
  const rows = [
    ['gateway', `${version}, process ${pid}, since ${startedAt}, ${ready ? 'ready' : 'not ready'}`],
    ...Object.entries(parts).filter(([name]) => name !== 'config' && !name.startsWith('upstream ')),
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
  return `${facts}${faults}\n${table([['REVISION', 'SINCE', 'HASH', 'BY', 'WHAT CHANGED'], ...cells], stream)}`
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
