/** `reload` and `rollback`: replace the running config, through the operators' listener. */
import { jsonText, printText } from './output.ts'
import type { Outcome } from '../process/reload/outcome.ts'
import type { ReplicaOutcome } from '../process/ops/rollback-of-all.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { type Invocation, type Io, UsageError } from './command.ts'
import { askAdmin, table } from './admin-client.ts'

export async function reload({ gateway, json, values, io }: Invocation): Promise<number> {
  const { yes: isMeant = false, all: atAll = false } = values
  if (atAll === true) {
    const body = { all: true, yes: isMeant }
    return printOfAll(await askAdmin(gateway, '/ops/api/reload', body), json, io)
  }
  return printOutcome(await askAdmin(gateway, '/ops/api/reload', { yes: isMeant }), json, io)
}

export async function rollback({
  gateway,
  rest: [to],
  json,
  values,
  io
}: Invocation): Promise<number> {
  const { yes: isMeant = false, all: atAll = false } = values
  const isHash = to !== undefined && /^[0-9a-f]{16}$/.test(to)
  const isNumber = to !== undefined && /^[1-9]\d{0,8}$/.test(to)
  if (to !== undefined && !isHash && !isNumber) {
    throw new UsageError('N is the number of a revision, HASH that of its config.')
  }
  if (atAll === true) {
    if (!isHash) throw new UsageError('--all needs a HASH: numbers differ between replicas.')
    const body = { hash: to, all: true, yes: isMeant }
    return printOfAll(await askAdmin(gateway, '/ops/api/rollback', body), json, io)
  }
  const revision = isHash ? { hash: to } : { ...(isNumber && { to: Number(to) }) }
  const body = { ...revision, yes: isMeant }
  return printOutcome(await askAdmin(gateway, '/ops/api/rollback', body), json, io)
}

interface OfAll {
  readonly outcome: string
  readonly replicas: readonly ReplicaOutcome[]
}

function printOfAll(response: Record<string, unknown>, json: boolean, io: Io): number {
  const { outcome, replicas } = response as unknown as OfAll
  const codes: Readonly<Record<string, number>> = { refused: 1, incomplete: 3 }
  if (json) io.stdout.write(jsonText(response))
  else {
    const rows = replicas.map(({ replica, outcome: ofReplica, generation, changes, faults }) => [
      replica,
      ofReplica,
      generation === undefined ? '' : String(generation),
      [...(faults ?? changes ?? [])].join('; ')
    ])
    io.stdout.write(table([['REPLICA', 'OUTCOME', 'GENERATION', 'DETAILS'], ...rows], io.stdout))
    io.stdout.write(`${printable(outcome)}\n`)
  }
  return codes[outcome] ?? 0
}

type TakenConfig = NonNullable<Extract<Outcome, { outcome: 'unchanged' }>['taken']>

function printOutcome(response: Record<string, unknown>, json: boolean, io: Io): number {
  const isRefused = response['outcome'] === 'refused'
  if (json) io.stdout.write(jsonText(response))
  else if (isRefused) io.stderr.write(`${printableLines(refusalOf(response))}\n`)
  else printText(outcomeLines(response).join('\n'), io)
  return isRefused ? 1 : 0
}

function linesOf(response: Record<string, unknown>, name: string): readonly string[] {
  return (response[name] as readonly string[] | undefined) ?? []
}

function refusalOf(response: Record<string, unknown>): string {
  const kept = `refused; generation ${String(response['generation'])} keeps running`
  return [...linesOf(response, 'faults'), kept].join('\n')
}

function outcomeLines(response: Record<string, unknown>): string[] {
  const { outcome, generation, filesDiffer } = response
  // Set when a gateway that watches its files has reloaded them before the command.
  const taken = response['taken'] as TakenConfig | undefined
  const restartNeeded = linesOf(response, 'restartNeeded')
  const lines = [
    ...linesOf(response, 'changes'),
    ...linesOf(response, 'sessions'),
    `${String(outcome)}; generation ${String(generation)} runs`
  ]
  if (taken !== undefined) {
    lines.push(`applied already at ${taken.at} (${taken.by}): ${taken.changes.join('; ')}`)
  }
  if (restartNeeded.length > 0) lines.push(`restart needed: ${restartNeeded.join(', ')}`)
  if (outcome === 'rolled back' && filesDiffer === true) {
    lines.push(
      'the files still hold the other config: correct them, or it comes back with their next ' +
        'change, a reload or a restart'
    )
  }
  return lines
}
