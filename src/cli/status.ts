/** `status`: the state of a running gateway and its config. */
import { jsonText } from './output.ts'
import { stateTexts } from '../ops/health.ts'
import type { Status } from '../ops/state-schemas.ts'
import { CommandError, type Invocation } from './command.ts'
import { printable } from '../observability/unprintable.ts'
import { askAdmin } from './admin-client.ts'
import { statusOfAll } from './status-of-all.ts'

export async function status({
  gateway,
  json,
  values: { all = false },
  io
}: Invocation<{ readonly all?: boolean }>): Promise<number> {
  if (all) return await statusOfAll(gateway, json, io.stdout)
  const response = (await askAdmin(gateway, '/ops/api/status')) as unknown as Status
  if (response.files === undefined || response.taken === undefined) {
    throw new CommandError('The response to /ops/api/status is not that of a gateway.')
  }
  io.stdout.write(json ? jsonText(response) : formatStatus(response))
  return response.files.faults === undefined ? 0 : 3
}

function formatStatus(shown: Status): string {
  const { version, pid, startedAt, ready, parts, upstreams, folder } = shown
  const { generation, requests, draining, files, restartNeeded, hash, taken } = shown
  const rows = [
    ['gateway', `${version}, process ${pid}, since ${startedAt}, ${ready ? 'ready' : 'not ready'}`],
    ...Object.entries(parts).filter(([name]) => name !== 'config' && !name.startsWith('upstream ')),
    ...upstreams.map(({ upstream, address, state, inFlight }) => [
      `upstream ${upstream}`,
      `${address} ${stateTexts[state]}, ${inFlight} requests`
    ]),
    ['config', folder],
    ['hash', hash],
    ['taken', `${taken.at} (${taken.by})`],
    ...(taken.changes.length > 0 ? [['changed', brief(taken.changes)]] : []),
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
  return facts + faults
}

function formatFiles(files: Status['files']): string {
  return files.state === 'running' ? 'the running config' : `refused at ${files.since}`
}

function brief(changes: readonly string[]) {
  return changes.length > 2
    ? `${changes.slice(0, 2).join('; ')}; and ${changes.length - 2} more`
    : changes.join('; ')
}
