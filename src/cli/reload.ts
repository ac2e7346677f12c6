/** `reload` and `rollback`: replace the running config, through the operators' listener. */
import { jsonText, printText } from './output.ts'
import type { Outcome } from '../process/reload/outcome.ts'
import type { ReplicaOutcome } from '../process/ops/rollback-of-all.ts'
import { printable, printableLines } from '../observability/unprintable.ts'
import { type Command, UsageError } from './command.ts'
import { askAdmin, table } from './admin-client.ts'

const yes = {
  type: 'boolean',
  description: 'allow the change to end most sessions of file users'
} as const
const allOption = { type: 'boolean', description: 'at all replicas' } as const

export const reload: Command = {
  summary: 'make a running gateway read its config files again, and print the changes',
  ways: [{ takes: ['all', 'yes', 'json'] }],
  details: `
Applies routes.yaml, limits.yaml, users files and certificate files, all or
nothing. Changes to gateway.yaml are listed and need a restart. A gateway that
watches its files (reload.watch) reloads by itself; SIGHUP reloads too.

Sessions of users who were removed, disabled or got another password end; their
number is printed. If most sessions of file users would end (more than half, and at
least 10), the files are refused unless --yes is set.

With --all every replica reads its own files; each takes or refuses them by itself.

Examples:
  console-gateway check && console-gateway reload
  console-gateway reload --all --yes
Exit codes: 1 if the files were refused or no gateway answers, 3 if a replica did not
confirm.`,
  options: { yes, all: allOption },
  asksGateway: true,
  run: async ({ gateway, json, values }) => {
    const { yes: isMeant = false, all: atAll = false } = values
    if (atAll === true) {
      const body = { all: true, yes: isMeant }
      return printOfAll(await askAdmin(gateway, '/ops/api/reload', body), json)
    }
    return printOutcome(await askAdmin(gateway, '/reload', { yes: isMeant }), json)
  }
}

export const rollback: Command = {
  summary: 'make a running gateway return to an earlier config',
  ways: [
    { words: '[N]', takes: ['yes', 'json'] },
    { words: 'HASH', takes: ['all', 'yes', 'json'] }
  ],
  details: `
N is the number of a revision in \`console-gateway status\`; without N it is the one
that ran before. The files are not changed, so their content comes back with their
next change, a reload or a restart: correct them too.

Sessions of file users end as with a reload. If most of them would end (more than
half, and at least 10), the rollback is refused unless --yes is set.

HASH names the config of a revision, the same at all replicas (\`status\` shows it).
With --all every replica returns to it or none does: if one has no such config, or
does not answer, all keep theirs.

Examples:
  console-gateway rollback
  console-gateway rollback 4
  console-gateway rollback --all 3f2a90b1c45d6e7f
Exit codes: 1 if there is no such revision, it is refused, or no gateway answers, 3 if
a replica did not confirm.`,
  options: { yes, all: allOption },
  asksGateway: true,
  run: async ({ gateway, rest: [to], json, values }) => {
    const { yes: isMeant = false, all: atAll = false } = values
    const isHash = to !== undefined && /^[0-9a-f]{16}$/.test(to)
    const isNumber = to !== undefined && /^[1-9]\d{0,8}$/.test(to)
    if (to !== undefined && !isHash && !isNumber) {
      throw new UsageError('N is the number of a revision, HASH that of its config.')
    }
    if (atAll === true) {
      if (!isHash) throw new UsageError('--all needs a HASH: numbers differ between replicas.')
      const body = { hash: to, all: true, yes: isMeant }
      return printOfAll(await askAdmin(gateway, '/ops/api/rollback', body), json)
    }
    const revision = isHash ? { hash: to } : { ...(isNumber && { to: Number(to) }) }
    // The former path would go back by one step.
    const path = isHash ? '/ops/api/rollback' : '/rollback'
    return printOutcome(await askAdmin(gateway, path, { ...revision, yes: isMeant }), json)
  }
}

interface OfAll {
  readonly outcome: string
  readonly replicas: readonly ReplicaOutcome[]
}

function printOfAll(response: Record<string, unknown>, json: boolean): number {
  const { outcome, replicas } = response as unknown as OfAll
  const codes: Readonly<Record<string, number>> = { refused: 1, incomplete: 3 }
  if (json) process.stdout.write(jsonText(response))
  else {
    const rows = replicas.map(({ replica, outcome: ofReplica, generation, changes, faults }) => [
      replica,
      ofReplica,
      generation === undefined ? '' : String(generation),
      [...(faults ?? changes ?? [])].join('; ')
    ])
    process.stdout.write(table([['REPLICA', 'OUTCOME', 'GENERATION', 'DETAILS'], ...rows]))
    process.stdout.write(`${printable(outcome)}\n`)
  }
  return codes[outcome] ?? 0
}

type TakenConfig = NonNullable<Extract<Outcome, { outcome: 'unchanged' }>['taken']>

function printOutcome(response: Record<string, unknown>, json: boolean): number {
  const isRefused = response['outcome'] === 'refused'
  if (json) process.stdout.write(jsonText(response))
  else if (isRefused) process.stderr.write(`${printableLines(refusalOf(response))}\n`)
  else printText(outcomeLines(response).join('\n'))
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
  // A gateway of the version before does not say so: its files are taken to differ.
  if (outcome === 'rolled back' && filesDiffer !== false) {
    lines.push(
      'the files still hold the other config: correct them, or it comes back with their next ' +
        'change, a reload or a restart'
    )
  }
  return lines
}
