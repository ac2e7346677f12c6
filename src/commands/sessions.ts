/** `sessions`: lists and closes sessions through the ops listener of a running gateway. */
import type { describeSession } from '../session/describe.ts'
import { type Command, UsageError } from './command.ts'
import { askOps, table } from './ops-client.ts'

export const sessions: Command = {
  summary: 'list the sessions of a user, close one, all of a user, or everyone’s',
  usage: ['list USER-ID [--json]', 'close USER-ID [SESSION-ID] [--json]', 'close --everyone [--json]'],
  details: `
Asks the ops listener of a running gateway (ops.listen of the config folder). With
Redis it concerns the sessions of all replicas.

Examples:
  console-gateway sessions list u-1001
  console-gateway sessions close u-1001 --json
Exit codes: 1 where no gateway answers.`,
  options: { everyone: { type: 'boolean', description: 'all sessions of all users' } },
  run: async ({ config, rest: [what, user, id], values: { everyone = false }, json }) => {
    const isList = what === 'list' && user !== undefined && everyone === false
    const isClose = what === 'close' && (user !== undefined) !== everyone
    if (!isList && !isClose) throw new UsageError()
    const answer = isList
      ? await askOps(config, `/sessions?user=${encodeURIComponent(user)}`)
      : await askOps(config, '/sessions/close', everyone === true ? { everyone: true } : { user, ...(id !== undefined && { id }) })
    process.stdout.write(json ? `${JSON.stringify(answer, null, 2)}\n` : isList ? listed(answer['sessions'] as Listed[]) : `closed: ${String(answer['closed'])}\n`)
    if (!json) process.stdout.write(unreadableNote(isList, Number(answer['unreadable'] ?? 0)))
    return 0
  }
}

/** What could not be read may be alive: a list that left it out in silence would mislead. */
function unreadableNote (isList: boolean, count: number): string {
  if (count === 0) return ''
  const found = `${count} session${count > 1 ? 's' : ''} of this user could not be read here`
  const why = 'written by another version, or with a secret that this process does not have'
  return `${found} (${why})${isList ? '' : '; closing reaches them all the same'}\n`
}

type Listed = ReturnType<typeof describeSession>

function listed (found: readonly Listed[]): string {
  if (found.length === 0) return 'no sessions\n'
  return table([['SESSION', 'STARTED', 'LAST USED', 'ADDRESS', 'AGENT'], ...found.map(({ id, startedAt, lastUsedAt, address, agent }) => [id, startedAt, lastUsedAt, address, agent.slice(0, 60)])])
}
