import { stateTexts } from '../observability/request-story.ts'
import { printableLines } from '../observability/unprintable.ts'
import type { ReloadAnswer, ReplicasStatus, Status } from '../ops/state-schemas.ts'
import { ask, askAndPrint, membersOf, send } from './ask.ts'
import { CommandError, type Invocation, type Output } from './command.ts'
import { aligned, type Columns, jsonText, table } from './output.ts'

export async function status(invocation: Invocation<{ readonly all?: boolean }>): Promise<number> {
  if (invocation.values.all === true) return await statusOfAll(invocation)
  const { files } = await askAndPrint(invocation, ['/ops/api/status'], statusText)
  return files.faults === undefined ? 0 : 3
}

async function statusOfAll(invocation: Invocation<object>): Promise<number> {
  const { replicas } = await askAndPrint(invocation, ['/ops/api/replicas'], replicasText)
  return replicas.every(({ fault, isSilent }) => fault === undefined && !isSilent) ? 0 : 3
}

function statusText(shown: Status): string {
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
    ['files', files.state === 'running' ? 'the running config' : `refused at ${files.since}`],
    ['generation', `${generation}, ${requests} requests`],
    ...draining.map(old => ['draining', `generation ${old.generation}, ${old.requests} requests`]),
    ...(restartNeeded.length > 0 ? [['restart needed', restartNeeded.join(', ')]] : [])
  ]
  const faults = files.faults === undefined ? [] : ['', ...files.faults]
  return `${aligned(rows).join('\n')}\n${printableLines([...faults, ''].join('\n'))}`
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

function replicasText({ replicas, info }: ReplicasStatus, stream: Output): string {
  const configs = new Set(replicas.map(({ configHash }) => configHash))
  const lines = [`${replicas.length} ${replicas.length === 1 ? 'replica' : 'replicas'}`]
  for (const { id, fault } of replicas) {
    if (fault !== undefined) lines.push(`${id}: ${fault}`)
  }
  for (const { id, restartNeeded } of replicas) {
    if (restartNeeded.length > 0) lines.push(`${id} needs a restart: ${restartNeeded.join(', ')}`)
  }
  if (configs.size > 1) lines.push(`replicas run ${configs.size} different configs`)
  if (info !== undefined) lines.push(info)
  return table(replicas, columns, stream) + printableLines([...lines, ''].join('\n'))
}

export async function ops({ gateway, json, io }: Invocation): Promise<void> {
  const { url: local } = await ask(gateway, '/ops/api/link', {})
  const link = typeof local === 'string' ? URL.parse(local) : null
  if (link === null) throw new CommandError('The response to /ops/api/link has no link.')
  // From afar, the gateway's own address is not the one by which it is reached.
  const isHere = gateway?.socketPath !== undefined
  const url = isHere ? link.href : `${gateway?.base}${link.pathname}`
  io.stdout.write(json ? jsonText({ url }) : `${url}\n`)
  io.stderr.write('It opens the operators’ page once, within two minutes.\n')
}

export async function reload({
  gateway,
  json,
  values,
  io
}: Invocation<{ readonly yes?: boolean }>): Promise<number> {
  const { yes = false } = values
  const answer = await ask<ReloadAnswer>(gateway, '/ops/api/reload', { yes })
  const isRefused = answer.outcome === 'refused'
  if (json) io.stdout.write(jsonText(answer))
  else (isRefused ? io.stderr : io.stdout).write(printableLines(outcomeText(answer)))
  return isRefused ? 1 : 0
}

function outcomeText(answer: ReloadAnswer): string {
  const { outcome, generation, faults = [], taken } = answer
  const { changes = [], sessions = [], restartNeeded = [] } = answer
  const end = outcome === 'refused' ? 'keeps running' : 'runs'
  const lines = [...faults, ...changes, ...sessions, `${outcome}; generation ${generation} ${end}`]
  // Set when a gateway that watches its files has reloaded them before the command.
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  return `${lines.join('\n')}\n`
}

export async function health({ gateway, json, io }: Invocation): Promise<number> {
  const { status: code, text } = await send(gateway, '/readyz')
  const parts = membersOf(text) ?? { status: `answered ${code}` }
  const lines = Object.entries(parts).map(([name, state]) => `${name}: ${String(state)}\n`)
  io.stdout.write(json ? jsonText(parts) : lines.join(''))
  return code === 200 ? 0 : 1
}
