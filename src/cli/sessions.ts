/** `sessions`: lists and closes sessions through the operators' listener of a running gateway. */
import { jsonText } from './output.ts'
import type { ClosedAnswer, NamedUser, SessionsAnswer } from '../ops/schemas.ts'
import { CommandError, type Invocation, type Output, UsageError } from './command.ts'
import { askAdmin } from './admin-client.ts'
import { table } from './table.ts'
import { askYes } from './prompt.ts'

type SessionsResponse = Partial<SessionsAnswer & ClosedAnswer>

const maxUsers = 1000

interface Values {
  readonly id?: string
  readonly name?: string
  readonly source?: string
  readonly everyone?: boolean
  readonly yes?: boolean
}

type Sessions = Invocation<Values>

export async function listSessions(invocation: Sessions): Promise<number> {
  const { userQuery } = userOf(invocation)
  const response: SessionsResponse = await askAdmin(invocation.gateway, pathOf(userQuery))
  return print(invocation, response, refusalOf(response, userQuery, true, invocation.io.stderr))
}

export async function closeSessions(invocation: Sessions): Promise<number> {
  const { gateway, values } = invocation
  const { userQuery, session } = userOf(invocation)
  const { everyone = false, yes = false } = values
  if (everyone && !yes) await confirmEveryone(invocation)
  const which = everyone
    ? { everyone: true }
    : { ...userQuery, ...(session !== undefined && { id: session }) }
  const response: SessionsResponse = await askAdmin(gateway, '/ops/api/sessions/close', which)
  return print(invocation, response, refusalOf(response, userQuery, false, invocation.io.stderr))
}

function print(
  { json, io }: Sessions,
  response: SessionsResponse,
  refusal: string | undefined
): number {
  if (json) io.stdout.write(jsonText(response))
  else if (refusal !== undefined) io.stderr.write(refusal)
  else if (response.closed === undefined) io.stdout.write(formatSessions(response, io.stdout))
  else io.stdout.write(`closed: ${String(response.closed)}\n`)
  return refusal === undefined ? 0 : 3
}

/** @throws UsageError without a terminal; CommandError for any answer but yes */
async function confirmEveryone({ gateway, io }: Sessions): Promise<void> {
  if (io.stdin.isTTY !== true) {
    throw new UsageError('There is no terminal to ask: --yes signs everyone out.')
  }
  const { users = 0 }: SessionsResponse = await askAdmin(gateway, '/ops/api/sessions?size=1')
  const number = `${users} ${users === 1 ? 'user' : 'users'}`
  if (await askYes(`Sign out everyone (${number})?`, io)) return
  throw new CommandError('Nothing was closed.')
}

/** The user that is named, and the session behind. */
function userOf({ values: { id, name, source }, rest: words }: Sessions): {
  readonly userQuery: NamedUser
  readonly session: string | undefined
} {
  const ofSource = source === undefined ? {} : { source }
  const [first, second] = words
  if (id !== undefined) return { userQuery: { user: id, by: 'id', ...ofSource }, session: first }
  if (name !== undefined) {
    return { userQuery: { user: name, by: 'name', ...ofSource }, session: first }
  }
  return {
    userQuery: { ...(first !== undefined && { user: first }), ...ofSource },
    session: second
  }
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
