/** Operators' endpoints: lists the sessions of a user or of all, and closes them. */
import type { FastifyInstance } from 'fastify'
import { createUserFinder, type KnownUsers, possibleUsers } from './find-users.ts'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import type { Closing } from './closing.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SignedIn, UserId } from '../session/types.ts'
import { closeSessionsBody, sessionsQuery } from './request-schemas.ts'
import { latestSessions, maxPageSize, sessionPage, sessionsOf } from './session-pages.ts'

interface Options {
  readonly sessions: Sessions
  readonly close: Closing
  readonly known: KnownUsers
  readonly log: { readonly info: (fields: object, message: string) => void }
}

const ofClose =
  'Name the sessions: {"user": "ID or NAME"}, {"user": "…", "id": "SESSION"} or ' +
  '{"everyone": true}; with {"by": "id"} or "name", and {"source": "NAME"}, if several users fit.'
const ofList =
  'Name a user: ?user=ID-or-NAME, with &by=id or &by=name and &source=NAME, ' +
  'or none for all sessions.'

export function addOpsSessions(ops: FastifyInstance, options: Options) {
  const { sessions, known } = options
  const { find } = createUserFinder(sessions.store)
  const { closeAll, closeOf } = createOperations(options)

  const add = (scope: FastifyInstance) => {
    scope.get<{ Querystring: Static<typeof sessionsQuery> }>(
      '/sessions',
      {
        schema: { summary: 'Live sessions, of a user or of all.', querystring: sessionsQuery },
        schemaErrorFormatter: malformed(ofList)
      },
      async ({ query }) => {
        if (query.user === undefined) {
          const { size = String(maxPageSize), search, after } = query
          return await sessionPage(sessions, {
            size: Number(size),
            ...(search !== undefined && { search }),
            ...(after !== undefined && { after })
          })
        }
        const { users, near } = await find(query)
        const [user] = users
        const none = { user: query.user, sessions: [] }
        if (user === undefined) return { ...none, near }
        if (users.length > 1) return { ...none, candidates: users }
        return { user: query.user, sessions: await sessionsOf(sessions, user) }
      }
    )

    addAct(scope, {
      path: '/sessions/close',
      kind: 'sessions.close',
      summary: 'Closes one session, all of a user, or everybody’s.',
      body: closeSessionsBody,
      hint: ofClose,
      run: async body => {
        if (body.user === undefined) return await closeAll()
        const { users, near } = await find(body)
        const [user] = users
        if (user === undefined) return { closed: 0, near }
        if (users.length > 1) return { closed: 0, candidates: users }
        return await closeOf(user, body.id)
      }
    })
  }
  addOpsScope(ops, add)
  return {
    latest: async (search = '') => {
      const exact = search === '' ? [] : possibleUsers(known, search)
      return await latestSessions(sessions, search, exact)
    },
    ofUser: async (user: UserId) => await sessionsOf(sessions, user)
  }
}

/** Closes live sessions for operators. */
function createOperations({ sessions, close, log }: Options) {
  async function closeAll(): Promise<object> {
    await sessions.store.endAll()
    log.info({ event: 'sessions.closed', by: 'operator', everyone: true }, 'all sessions closed')
    return { closed: 'everyone' }
  }

  async function closeOf(user: SignedIn, id: string | undefined): Promise<object> {
    const closed = await close(user, id)
    log.info(
      {
        event: 'sessions.closed',
        by: 'operator',
        user: user.username,
        userId: user.id,
        source: user.source,
        closed,
        ...(id !== undefined && { session: id.slice(0, 64) })
      },
      'sessions closed'
    )
    return { closed, of: user }
  }

  return { closeAll, closeOf }
}
