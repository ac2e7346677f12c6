import type { ClosedAnswer, NamedUser, SessionsAnswer, ShownSession } from '../ops/users.ts'
import { ask } from './ask.ts'
import { CommandError, type Invocation, type Output, UsageError } from './command.ts'
import { type Columns, jsonText, table } from './output.ts'
import { askYes } from './prompt.ts'

type Answer = Partial<SessionsAnswer & ClosedAnswer>

const path = '/ops/api/sessions'
const maxUsers = 1000
const maxAgent = 60

type OfUser = Omit<NamedUser, 'user'>
type Sessions = Invocation<OfUser & { readonly everyone?: boolean; readonly yes?: boolean }>

export async function listSessions(invocation: Invocation<OfUser>): Promise<number> {
  const { rest, values } = invocation
  const [user] = rest
  const named = { ...(user !== undefined && { user }), ...values }
  const query = new URLSearchParams({ size: `${maxUsers}`, ...named })
  return await askAndPrint(invocation, `${path}?${query.toString()}`)
}

export async function closeSessions(invocation: Sessions): Promise<number> {
  const { rest, values } = invocation
  const { everyone, yes, by, source } = values
  if (everyone === true && yes !== true) await confirmEveryone(invocation)
  const [user, id] = rest
  return await askAndPrint(invocation, `${path}/close`, { everyone, user, id, by, source })
}

async function askAndPrint(invocation: Sessions, target: string, body?: object): Promise<number> {
  const { gateway, json, io } = invocation
  const answer = await ask<Answer>(gateway, target, body)
  const refusal = refusalOf(answer, invocation)
  if (json) io.stdout.write(jsonText(answer))
  else if (refusal !== undefined) io.stderr.write(refusal)
  else if (answer.closed === undefined) io.stdout.write(sessionsText(answer, io.stdout))
  else io.stdout.write(`closed: ${answer.closed}\n`)
  return refusal === undefined ? 0 : 3
}

async function confirmEveryone({ gateway, io }: Sessions): Promise<void> {
  if (io.stdin.isTTY !== true) {
    throw new UsageError('There is no terminal to ask: --yes signs everyone out.')
  }
  const { users = 0 } = await ask<Answer>(gateway, `${path}?size=1`)
  const number = `${users} ${users === 1 ? 'user' : 'users'}`
  if (await askYes(`Sign out everyone (${number})?`, io)) return
  throw new CommandError('Nothing was closed.')
}

function refusalOf(
  { candidates, closed }: Answer,
  { rest: [user = ''], values: { by, source }, io: { stderr } }: Sessions
): string | undefined {
  if (candidates !== undefined) {
    const columns: Columns<(typeof candidates)[number]> = {
      SOURCE: each => each.source,
      ID: ({ id }) => id,
      NAME: ({ username }) => username
    }
    return (
      `"${user}" may be any of these users; choose one with --by or --source:\n` +
      table(candidates, columns, stderr)
    )
  }
  if (closed !== 0) return undefined
  const ofSource = source === undefined ? '' : ` of ${source}`
  return `No session of a user with ${by ?? 'id or name'} ${user}${ofSource}.\n`
}

const userColumns: Columns<ShownSession> = {
  USER: ({ user }) => user,
  ID: ({ userId }) => userId,
  SOURCE: ({ source }) => source
}

function sessionsText({ sessions = [], isWhole = true, users }: Answer, stream: Output): string {
  const columns: Columns<ShownSession> = {
    'SESSION': ({ id }) => id,
    'STARTED': ({ startedAt }) => startedAt,
    'LAST USED': ({ lastUsedAt }) => lastUsedAt,
    ...(users !== undefined && userColumns),
    'ADDRESS': ({ address }) => address,
    'AGENT': ({ agent }) => agent.slice(0, maxAgent)
  }
  const more = isWhole
    ? ''
    : `and more: ${users ?? 0} users are signed in; name one to see all of theirs\n`
  return table(sessions, columns, stream, 'no sessions') + more
}
