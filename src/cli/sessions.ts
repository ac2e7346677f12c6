/** `sessions`: lists and closes sessions through the ops listener of a running gateway. */
import type { ShownSession } from '../admin/sessions.ts'
import type { SignedIn } from '../session/record.ts'
import { type Command, type Given, UsageError } from './command.ts'
import { askAdmin, table } from './admin-client.ts'

interface Answer {
  readonly sessions?: readonly ShownSession[]
  readonly unreadable?: number
  readonly closed?: number | 'everyone'
  /** Several users fit. */
  readonly candidates?: readonly SignedIn[]
  /** Nobody fits, but these nearly do. */
  readonly near?: readonly SignedIn[]
  /** Of a list of all: whether it holds all. */
  readonly isWhole?: boolean
  readonly users?: number
}

interface Wanted {
  readonly user?: string
  readonly by?: 'id' | 'name'
  readonly source?: string
}

export const sessions: Command = {
  summary: 'list the sessions of a user or of all, close one, all of a user, or everyone’s',
  usage: [
    'list [USER] [--id ID | --name NAME] [--source NAME] [--json]',
    'close USER [SESSION-ID]',
    'close --id ID | --name NAME [SESSION-ID] [--source NAME]',
    'close --everyone'
  ],
  details: `
Asks the ops listener of a running gateway (ops.listen of the config folder). With
Redis it concerns the sessions of all replicas.

USER is a user name or an id (\`user\` and \`userId\` in the log). Where several users
fit, nothing is done and they are listed: --id, --name and --source tell which.
Without a user, list shows the sessions of all, 1000 at most.

Examples:
  console-gateway sessions list
  console-gateway sessions list alice
  console-gateway sessions close alice --source users-file
  console-gateway sessions close --id u-1001 --json
Exit codes: 1 where no gateway answers, 3 where no user fits or several do.`,
  options: {
    everyone: { type: 'boolean', description: 'all sessions of all users' },
    id: { type: 'string', value: 'ID', description: 'the user with this id' },
    name: { type: 'string', value: 'NAME', description: 'the user with this user name' },
    source: { type: 'string', value: 'NAME', description: 'of this credential source' }
  },
  run: async ({ config, rest: [what, ...more], values, json }) => {
    const everyone = values['everyone'] === true
    const {
      wanted,
      rest: [session, ...tooMany]
    } = wantedOf(more, values)
    const isNamed = wanted.user !== undefined
    const isList = what === 'list' && !everyone && session === undefined
    const isClose = what === 'close' && isNamed !== everyone && (isNamed || session === undefined)
    const isBare = wanted.source !== undefined && !isNamed
    if ((!isList && !isClose) || tooMany.length > 0 || isBare) throw new UsageError()
    const which = everyone
      ? { everyone }
      : { ...wanted, ...(session !== undefined && { id: session }) }
    const answer: Answer = isList
      ? await askAdmin(config, pathOf(wanted))
      : await askAdmin(config, '/sessions/close', which)
    if (json) process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
    const refusal = refusalOf(answer, wanted, isList)
    if (refusal !== undefined) {
      if (!json) process.stderr.write(refusal)
      return 3
    }
    if (!json) process.stdout.write(isList ? listed(answer) : `closed: ${String(answer.closed)}\n`)
    if (!json) process.stdout.write(unreadableNote(isList, answer.unreadable ?? 0))
    return 0
  }
}

interface Words {
  readonly wanted: Wanted
  readonly rest: readonly string[]
}

function wantedOf(words: readonly string[], { id, name, source }: Given['values']): Words {
  if (id !== undefined && name !== undefined) {
    throw new UsageError('Name the user by --id or by --name.')
  }
  const ofSource = source === undefined ? {} : { source: String(source) }
  if (id !== undefined) return { wanted: { user: String(id), by: 'id', ...ofSource }, rest: words }
  if (name !== undefined) {
    return { wanted: { user: String(name), by: 'name', ...ofSource }, rest: words }
  }
  const [user, ...rest] = words
  return { wanted: { ...(user !== undefined && { user }), ...ofSource }, rest }
}

function pathOf(wanted: Wanted): string {
  const query = new URLSearchParams({ ...wanted }).toString()
  return query === '' ? '/sessions' : `/sessions?${query}`
}

/** Why nothing was done; undefined where something was. */
function refusalOf(answer: Answer, wanted: Wanted, isList: boolean): string | undefined {
  const { candidates, near, closed } = answer
  const { user = '', by, source } = wanted
  if (candidates !== undefined) {
    const rows = candidates.map(({ source: its, id, username }) => [its, id, username])
    return (
      `"${user}" may be any of these users; say which with --id, --name or --source:\n` +
      table([['SOURCE', 'ID', 'NAME'], ...rows])
    )
  }
  if (near === undefined && closed !== 0) return undefined
  const isSilent = isList && (near ?? []).length === 0 && by === undefined && source === undefined
  if (isSilent) return undefined
  const what = by === undefined ? 'id or name' : by
  const ofSource = source === undefined ? '' : ` of ${source}`
  const hints = (near ?? []).map(each =>
    by === 'name' || by === undefined
      ? `id ${each.id} of ${each.source} (user name ${each.username})`
      : `user name ${each.username} (id ${each.id})`
  )
  const hint = hints.length === 0 ? '' : ` Did you mean ${hints.join(', or ')}?`
  return `No session of a user with ${what} ${user}${ofSource}.${hint}\n`
}

/** What could not be read may be alive: a list that left it out in silence would mislead. */
function unreadableNote(isList: boolean, count: number): string {
  if (count === 0) return ''
  const found = `${count} session${count > 1 ? 's' : ''} could not be read here`
  const why = 'written by another version, or with a secret that this process does not have'
  return `${found} (${why})${isList ? '' : '; closing reaches them all the same'}\n`
}

const maxAgent = 60

function listed({ sessions: found = [], isWhole = true, users }: Answer): string {
  if (found.length === 0) return 'no sessions\n'
  const rows = found.map(({ id, startedAt, lastUsedAt, user, userId, source, address, agent }) => {
    const whose = users === undefined ? [] : [user, userId, source]
    return [id, startedAt, lastUsedAt, ...whose, address, agent.slice(0, maxAgent)]
  })
  const whose = users === undefined ? [] : ['USER', 'ID', 'SOURCE']
  const head = ['SESSION', 'STARTED', 'LAST USED', ...whose, 'ADDRESS', 'AGENT']
  const more = isWhole
    ? ''
    : `and more: ${users ?? 0} users are signed in; name one to see all of theirs\n`
  return table([head, ...rows]) + more
}
