/** `reload` and `rollback`: put another config in the place of the running one, through the ops listener. */
import type { Outcome } from '../process/reload/outcome.ts'
import { type Command, UsageError } from './command.ts'
import { askAdmin } from './admin-client.ts'

const yes = {
  type: 'boolean',
  description: 'end the sessions of file users, also where that is most of them'
} as const

export const reload: Command = {
  summary: 'have a running gateway read its config files, and say what changed or why not',
  usage: ['[--yes] [--json]'],
  details: `
routes.yaml, limits.yaml, users files and certificate files are taken, all or
nothing; changes to gateway.yaml are named and need a restart. A gateway that
watches its files (reload.watch) does so by itself; SIGHUP does the same.

Sessions of users who were removed, disabled or given another password end with
it; what became of them is printed. Where most sessions of file users would end
(more than half, and at least 10), the files are refused unless --yes says that
this is meant.

Examples:
  console-gateway check && console-gateway reload
  console-gateway reload --yes
Exit codes: 1 where the files were refused, or no gateway answers.`,
  options: { yes },
  run: async ({ config, rest, json, values: { yes: isMeant = false } }) => {
    if (rest.length > 0) throw new UsageError()
    return tell(await askAdmin(config, '/reload', { yes: isMeant }), json)
  }
}

export const rollback: Command = {
  summary: 'have a running gateway go back to an earlier config',
  usage: ['[N] [--yes] [--json]'],
  details: `
Without N to the one before that which runs, or after \`rollback N\` to what ran
before it; \`console-gateway status\` lists them. The files stay as they are, so what they hold comes back with their next
change, a reload or a restart: put them right too.

Sessions of file users end with it as with a reload. Where that is most of them
(more than half, and at least 10), it is refused unless --yes says that this is
meant.

Examples:
  console-gateway rollback
  console-gateway rollback 4
Exit codes: 1 where there is no such revision, it is refused, or no gateway
answers.`,
  options: { yes },
  run: async ({ config, rest: [to, ...more], json, values: { yes: isMeant = false } }) => {
    if (more.length > 0 || (to !== undefined && !/^[1-9]\d{0,8}$/.test(to))) {
      throw new UsageError('N is the number of a revision.')
    }
    const revision = to === undefined ? {} : { to: Number(to) }
    return tell(await askAdmin(config, '/rollback', { ...revision, yes: isMeant }), json)
  }
}

type Taken = NonNullable<Extract<Outcome, { outcome: 'unchanged' }>['taken']>

/** A gateway that watches its files may have been quicker than the operator. */
function takenInWords({ at, by, changes }: Taken): string {
  return `it was taken at ${at} (${by}): ${changes.join('; ')}\n`
}

function tell(answer: Record<string, unknown>, json: boolean): number {
  const { outcome, generation } = answer
  const lines = (name: string) => (answer[name] as readonly string[] | undefined) ?? []
  const code = outcome === 'refused' ? 1 : 0
  if (json) process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
  else if (outcome === 'refused') {
    process.stderr.write(
      `${lines('faults')
        .map(fault => `${fault}\n`)
        .join('')}refused; generation ${String(generation)} goes on as it is\n`
    )
  } else {
    const all = [...lines('changes'), ...lines('sessions')]
    process.stdout.write(all.map(line => `${line}\n`).join(''))
    process.stdout.write(`${String(outcome)}; generation ${String(generation)} runs\n`)
    if (answer['taken'] !== undefined) process.stdout.write(takenInWords(answer['taken'] as Taken))
    if (lines('restartNeeded').length > 0) {
      process.stdout.write(`restart needed: ${lines('restartNeeded').join(', ')}\n`)
    }
    if (outcome === 'rolled back') {
      process.stdout.write(
        'the files still hold the other config: put them right, or it comes back with their next change, a reload or a restart\n'
      )
    }
  }
  return code
}
