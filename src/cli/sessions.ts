/** `sessions`: lists and closes sessions through the operators' listener of a running gateway. */
import { jsonText } from './output.ts'
import type { ClosedAnswer, NamedUser, SessionsAnswer } from '../ops/schemas.ts'
import { CommandError, type Invocation, type Output, UsageError } from './command.ts'
import { askAdmin, table } from './admin-client.ts'
import { askYes } from './prompt.ts'

type SessionsResponse = Partial<SessionsAnswer & ClosedAnswer>

const maxUsers = 1000

export async function sessions(invocation: Invocation): Promise<number> {
  const {
    gateway,
    rest: [what, ...more],
    values,
    json,
    io
  } = invocation
  const {
    userQuery,
    rest: [session]
  } = parseWords(more, values)
  const isList = what === 'list'
  const isEveryone = values['everyone'] === true
  if (isEveryone && values['yes'] !== true) await confirmEveryone(invocation)
  const which = isEveryone
    ? { everyone: true }
    : { ...userQuery, ...(session !== undefined && { id: session }) }
  const response: SessionsResponse = isList
    ? await askAdmin(gateway, pathOf(userQuery))
    : await askAdmin(gateway, '/ops/api/sessions/close', which)
  if (json) io.stdout.write(jsonText(response))
  const refusal = refusalOf(response, userQuery, isList, io.stderr)
  if (refusal !== undefined) {
    if (!json) io.stderr.write(refusal)
    return 3
  }
  if (!json) {
    io.stdout.write(
      isList ? formatSessions(response, io.stdout) : `closed: ${String(response.closed)}\n`
    )
  }
  return 0
}

/** @throws UsageError without a terminal; CommandError for any answer but yes */
async function confirmEveryone({ gateway, io }: Invocation): Promise<void> {
  if (io.stdin.isTTY !== true) {
    throw new UsageError('There is no terminal to ask: --yes signs everyone out.')
  }
  const { users = 0 }: SessionsResponse = await askAdmin(gateway, '/ops/api/sessions?size=1')
  const number = `${users} ${users === 1 ? 'user' : 'users'}`
  if (await askYes(`Sign out everyone (${number})?`, io)) return
  throw new CommandError('Nothing was closed.')
}

interface ParsedWords {
  readonly userQuery: NamedUser
  readonly rest: readonly string[]
}

function parseWords(
  words: readonly string[],
  { id, name, source }: Invocation['values']
): ParsedWords {
  const ofSource = source === undefined ? {} : { source: String(source) }
  if (id !== undefined) {
    return { userQuery: { user: String(id), by: 'id', ...ofSource }, rest: words }
  }
  if (name !== undefined) {
    return { userQuery: { user: String(name), by: 'name', ...ofSource }, rest: words }
  }
  const [user, ...rest] = words
  return { userQuery: { ...(user !== undefined && { user }), ...ofSource }, rest }
}

function pathOf(userQuery: NamedUser): string {
  const query = new URLSearchParams({ ...userQuery }).toString()
  return `/ops/api/sessions?${query === '' ? `size=${maxUsers}` : query}`
}

/** The reason why nothing was done; undefined when something was. */
function refusalOf(
  response: SessionsResponse,
  userQuery: NamedUser,
  isList: boolean,
  stream: Output
): string | undefined {
  const { candidates, near, closed } = response
  const { user = '', by, source } = userQuery
  if (candidates !== undefined) {
    const rows = candidates.map(each => [each.source, each.id, each.username])
    return (
      `"${user}" may be any of these users; choose one with --id, --name or --source:\n` +
      table([['SOURCE', 'ID', 'NAME'], ...rows], stream)
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

const maxAgent = 60

function formatSessions(
  { sessions: shown = [], isWhole = true, users }: SessionsResponse,
  stream: Output
): string {
  if (shown.length === 0) return 'no sessions\n'
  const rows = shown.map(({ id, startedAt, lastUsedAt, user, userId, source, address, agent }) => {
    const whose = users === undefined ? [] : [user, userId, source]
    return [id, startedAt, lastUsedAt, ...whose, address, agent.slice(0, maxAgent)]
  })
  const whose = users === undefined ? [] : ['USER', 'ID', 'SOURCE']
  const head = ['SESSION', 'STARTED', 'LAST USED', ...whose, 'ADDRESS', 'AGENT']
  const more = isWhole
    ? ''
    : `and more: ${users ?? 0} users are signed in; name one to see all of theirs\n`
  return table([head, ...rows], stream) + more
}
