import type { ClosedAnswer, NamedUser, SessionsAnswer, ShownSession } from '../../ops/users.ts'
import {
  type CliCommand,
  type Columns,
  CommandError,
  type Invocation,
  type Shown,
  tableOf,
  UsageError
} from '../command.ts'

type OfUser = Omit<NamedUser, 'user'>
type Closing = OfUser & { readonly everyone?: boolean; readonly yes?: boolean }

const maxUsers = 1000
const maxAgent = 60

const candidateColumns: Columns<NonNullable<ClosedAnswer['candidates']>[number]> = {
  SOURCE: ({ source }) => source,
  ID: ({ id }) => id,
  NAME: ({ username }) => username
}

const userColumns: Columns<ShownSession> = {
  USER: ({ user }) => user,
  ID: ({ userId }) => userId,
  SOURCE: ({ source }) => source
}

export function addSessions(program: CliCommand): void {
  const sessions = program
    .subcommand('sessions', 'list sessions; close one, those of a user, or everyone’s')
    .asksOne()
    .details(`
A user is a name or an id. Who was signed out may sign in again: see users block.
Exit codes: 3 if several users match, or nobody for \`close\`.`)
    .examples('console-gateway sessions close alice --source users-file')
  const subcommand = (words: string, description: string) =>
    sessions
      .subcommand(words, description)
      .option('--by <what>', 'whether USER is an id or a name (default: either)')
      .option('--source <name>', 'of this credential source')
  subcommand('list [user]', 'those of a user, or 1000 of all').asks<SessionsAnswer, OfUser>(
    ({ rest: [user], values }) => ['/sessions', { query: { size: maxUsers, user, ...values } }],
    (answer, { rest: [user] }) => candidatesIn(answer.candidates, user) ?? shown(answer)
  )
  subcommand('close [user] [session-id]', 'close the sessions of a user, or one of them')
    .option('--everyone', 'all sessions of all users')
    .option('--yes', 'with --everyone: do not ask')
    .asks<ClosedAnswer, Closing>(
      async invocation => {
        const { rest, values } = invocation
        const { everyone, yes, ...of } = values
        if (everyone === true && yes !== true) await confirmEveryone(invocation)
        const [user, id] = rest
        return ['/sessions/close', { body: { everyone, user, id, ...of } }]
      },
      ({ closed, candidates }, { rest: [user, id], values: { by = 'id or name', source } }) => {
        const ofSource = source === undefined ? '' : ` of ${source}`
        const session = id === undefined ? 'session' : `session ${id}`
        const none = `No ${session} of a user with ${by} ${user}${ofSource}.`
        const text = closed === 0 ? { text: none, isRefusal: true } : { text: `closed: ${closed}` }
        return candidatesIn(candidates, user) ?? text
      }
    )
}

async function confirmEveryone({ gateway, io }: Invocation<Closing>): Promise<void> {
  if (io.stdin.isTTY !== true) {
    throw new UsageError('There is no terminal to ask: --yes signs everyone out.')
  }
  const { ask } = await import('../ask.ts')
  const { askYes } = await import('../prompt.ts')
  const { users = 0 } = await ask<SessionsAnswer>(gateway, '/sessions', { query: { size: 1 } })
  const number = `${users} ${users === 1 ? 'user' : 'users'}`
  if (await askYes(`Sign out everyone (${number})?`, io)) return
  throw new CommandError('Nothing was closed.')
}

function candidatesIn(candidates: ClosedAnswer['candidates'], user = ''): Shown | undefined {
  if (candidates === undefined) return undefined
  const text = `"${user}" may be any of these users; choose one with --by or --source.`
  return { ...tableOf(candidates, candidateColumns), text, isRefusal: true }
}

function shown({ sessions, isWhole = true, users }: SessionsAnswer): Shown {
  const columns: Columns<ShownSession> = {
    'SESSION': ({ id }) => id,
    'STARTED': ({ startedAt }) => startedAt,
    'LAST USED': ({ lastUsedAt }) => lastUsedAt,
    ...(users !== undefined && userColumns),
    'ADDRESS': ({ address }) => address,
    'AGENT': ({ agent }) => agent.slice(0, maxAgent)
  }
  const more = `and more: ${users ?? 0} users are signed in; name one to see all of theirs`
  return { ...tableOf(sessions, columns, 'no sessions'), ...(!isWhole && { text: more }) }
}
