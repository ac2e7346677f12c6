import type { ClosedAnswer, NamedUser, SessionsAnswer } from '../ops/users.ts'
import { ask } from './ask.ts'
import { CommandError, type Invocation, type Output, UsageError } from './command.ts'
import { jsonText, table } from './output.ts'
import { askYes } from './prompt.ts'

type Answer = Partial<SessionsAnswer & ClosedAnswer>

const path = '/ops/api/sessions'
const maxUsers = 1000
const maxAgent = 60

interface Values {
  readonly by?: 'id' | 'name'
  readonly source?: string
  readonly everyone?: boolean
  readonly yes?: boolean
}

type Sessions = Invocation<Values>

export async function listSessions(invocation: Sessions): Promise<number> {
  const named = userOf(invocation)
  const query = new URLSearchParams({ size: `${maxUsers}`, ...named })
  const answer = await ask<Answer>(invocation.gateway, `${path}?${query.toString()}`)
  return print(invocation, answer, refusalOf(answer, named, invocation))
}

export async function closeSessions(invocation: Sessions): Promise<number> {
  const { everyone = false, yes = false } = invocation.values
  const named = userOf(invocation)
  if (everyone && !yes) await confirmEveryone(invocation)
  const which = everyone ? { everyone } : { ...named, id: invocation.rest[1] }
  const answer = await ask<Answer>(invocation.gateway, `${path}/close`, which)
  return print(invocation, answer, refusalOf(answer, named, invocation))
}

function print({ json, io }: Sessions, answer: Answer, refusal: string | undefined): number {
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

function userOf({ values: { by, source }, rest: [user] }: Sessions): NamedUser {
  return {
    ...(user !== undefined && { user }),
    ...(by !== undefined && { by }),
    ...(source !== undefined && { source })
  }
}

function refusalOf(
  { candidates, closed }: Answer,
  { user = '', by, source }: NamedUser,
  { io: { stderr } }: Sessions
): string | undefined {
  if (candidates !== undefined) {
    const rows = candidates.map(each => [each.source, each.id, each.username])
    return (
      `"${user}" may be any of these users; choose one with --by or --source:\n` +
      table(['SOURCE', 'ID', 'NAME'], rows, stderr)
    )
  }
  if (closed !== 0) return undefined
  const ofSource = source === undefined ? '' : ` of ${source}`
  return `No session of a user with ${by ?? 'id or name'} ${user}${ofSource}.\n`
}

function sessionsText(answer: Answer, stream: Output): string {
  const { sessions = [], isWhole = true, users } = answer
  if (sessions.length === 0) return 'no sessions\n'
  const isOfAll = users !== undefined
  const rows = sessions.map(({ id, startedAt, lastUsedAt, user, userId, source, ...of }) => {
    const whose = isOfAll ? [user, userId, source] : []
    return [id, startedAt, lastUsedAt, ...whose, of.address, of.agent.slice(0, maxAgent)]
  })
  const whose = isOfAll ? ['USER', 'ID', 'SOURCE'] : []
  const head = ['SESSION', 'STARTED', 'LAST USED', ...whose, 'ADDRESS', 'AGENT']
  const more = isWhole
    ? ''
    : `and more: ${users ?? 0} users are signed in; name one to see all of theirs\n`
  return table(head, rows, stream) + more
}
