import { stateTexts } from '../observability/request-story.ts'
import type { ReloadAnswer, ReplicasStatus, Status } from '../ops/state-schemas.ts'
import { send } from './ask.ts'
import { type Columns, type Invocation, type Shown, tableOf } from './command.ts'

export function statusOf(shown: Status): Shown {
  const { version, pid, startedAt, ready, parts, upstreams, folder } = shown
  const { generation, requests, draining, files, restartNeeded, hash, taken } = shown
  const table = [
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
    ['files', files.state === 'running' ? 'the running config' : `refused at ${files.since}`],
    ['generation', `${generation}, ${requests} requests`],
    ...draining.map(old => ['draining', `generation ${old.generation}, ${old.requests} requests`]),
    ...(restartNeeded.length > 0 ? [['restart needed', restartNeeded.join(', ')]] : [])
  ]
  const { faults } = files
  return faults === undefined ? { table } : { table, text: ['', ...faults].join('\n'), code: 3 }
}

function brief(changes: readonly string[]): string {
  const more = changes.length > 2 ? [`and ${changes.length - 2} more`] : []
  return [...changes.slice(0, 2), ...more].join('; ')
}

type Replica = ReplicasStatus['replicas'][number]

const columns: Columns<Replica> = {
  'REPLICA': ({ id }) => id,
  'HOST': ({ host }) => host,
  'VERSION': ({ version }) => version,
  'STATE': stateOf,
  'GENERATION': ({ generation }) => String(generation),
  'CONFIG': ({ configHash }) => configHash,
  'FILES': ({ files }) => files,
  'REQUESTS/S': ({ requestsPerSecond }) => String(requestsPerSecond)
}

function stateOf({ ready, isSilent, seenAt }: Replica): string {
  if (isSilent) return `silent since ${seenAt}`
  return ready ? 'ready' : 'not ready'
}

export function replicasOf({ replicas, info }: ReplicasStatus): Shown {
  const configs = new Set(replicas.map(({ configHash }) => configHash))
  const lines = [`${replicas.length} ${replicas.length === 1 ? 'replica' : 'replicas'}`]
  for (const { id, fault, restartNeeded } of replicas) {
    if (fault !== undefined) lines.push(`${id}: ${fault}`)
    if (restartNeeded.length > 0) lines.push(`${id} needs a restart: ${restartNeeded.join(', ')}`)
  }
  if (configs.size > 1) lines.push(`replicas run ${configs.size} different configs`)
  if (info !== undefined) lines.push(info)
  const isWell = replicas.every(({ fault, isSilent }) => fault === undefined && !isSilent)
  return { ...tableOf(replicas, columns), text: lines.join('\n'), code: isWell ? 0 : 3 }
}

export function reloadOf(answer: ReloadAnswer): Shown {
  const { outcome, generation, faults = [], taken } = answer
  const { changes = [], sessions = [], restartNeeded = [] } = answer
  const isRefusal = outcome === 'refused'
  const end = isRefusal ? 'keeps running' : 'runs'
  const lines = [...faults, ...changes, ...sessions, `${outcome}; generation ${generation} ${end}`]
  // Set when a gateway that watches its files has reloaded them before the command.
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  return { text: lines.join('\n'), isRefusal, code: isRefusal ? 1 : 0 }
}

export async function health({ gateway }: Invocation): Promise<Shown> {
  const { status, members } = await send(gateway, '/readyz')
  const json = members ?? { status: `answered ${status}` }
  const lines = Object.entries(json).map(([name, state]) => `${name}: ${String(state)}`)
  return { json, text: lines.join('\n'), code: status === 200 ? 0 : 1 }
}
