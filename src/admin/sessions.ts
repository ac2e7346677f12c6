/** Operators' endpoints: lists the sessions of a user or of all, and closes them. */
import type { FastifyInstance } from 'fastify'
import { createUserFinder, maxSignedIn } from './find-users.ts'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope, withAlias } from './api.ts'
import { describeSession } from '../session/describe.ts'
import { identityKey } from '../session/identity-key.ts'
import type { SignedIn } from '../session/record.ts'
import type { Sessions } from '../session/session.ts'
import { closeSessionsBody, sessionsQuery } from './request-schemas.ts'

interface Options {
  readonly sessions: Sessions
  /** The names of the credential sources. */
  readonly sources: readonly string[]
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** A session as operators see it, with its user. */
export type ShownSession = ReturnType<typeof describeSession> & {
  readonly userId: string
  readonly user: string
}

interface ShownSessions {
  readonly sessions: readonly ShownSession[]
  readonly unreadable: number
  /** Whether nothing was left out. */
  readonly isWhole: boolean
  readonly users: number
}

/** Bounds the list of all sessions; of the rest only the users are counted. */
const maxShown = 1000
const usersAtOnce = 50

const ofClose =
  'Name the sessions: {"user": "ID or NAME"}, {"user": "…", "id": "SESSION"} or ' +
  '{"everyone": true}; with {"by": "id"} or "name", and {"source": "NAME"}, if several users fit.'
const ofList =
  'Name a user: /sessions?user=ID-or-NAME, with &by=id or &by=name and &source=NAME, ' +
  'or none for all sessions.'

export function addOpsSessions(ops: FastifyInstance, { sessions, sources, log }: Options): void {
  const { find } = createUserFinder({ sessions, sources })
  const { closeAll, closeOf, shownOf, listAll, effectOn, effectOnAll } = createOperations({
    sessions,
    log
  })

  const add = (scope: FastifyInstance) => {
    scope.get<{ Querystring: Static<typeof sessionsQuery> }>(
      '/sessions',
      {
        schema: { summary: 'Live sessions, of a user or of all.', querystring: sessionsQuery },
        schemaErrorFormatter: malformed(ofList)
      },
      async ({ query }) => {
        if (query.user === undefined) return await listAll()
        const { users, near } = await find(query)
        const [user] = users
        const none = { user: query.user, sessions: [], unreadable: 0 }
        if (user === undefined) return { ...none, near }
        if (users.length > 1) return { ...none, candidates: users }
        return { user: query.user, ...(await shownOf(user)) }
      }
    )

    addAct(scope, {
      path: '/sessions/close',
      kind: 'sessions.close',
      summary: 'Closes one session, all of a user, or everybody’s.',
      body: closeSessionsBody,
      hint: ofClose,
      preview: async body => {
        if (body.user === undefined) return await effectOnAll()
        const { users } = await find(body)
        const [user] = users
        if (user === undefined || users.length > 1) return { sessions: 0, users: users.length }
        return await effectOn(user, body.id)
      },
      run: async body => {
        if (body.user === undefined) return await closeAll()
        const { users, near } = await find(body)
        const [user] = users
        if (user === undefined) return { closed: 0, unreadable: 0, near }
        if (users.length > 1) return { closed: 0, unreadable: 0, candidates: users }
        return await closeOf(user, body.id)
      },
      undo: undefined
    })
  }
  addOpsScope(ops, add, withAlias)
}

/** Lists and closes live sessions for operators. */
function createOperations({ sessions, log }: Pick<Options, 'sessions' | 'log'>) {
  async function closeAll(): Promise<object> {
    await sessions.closeAll()
    log.info({ event: 'sessions.closed', by: 'operator', everyone: true }, 'all sessions closed')
    return { closed: 'everyone' }
  }

  async function closeOf(user: SignedIn, id: string | undefined): Promise<object> {
    const key = keyOf(user)
    const { unreadable } = await sessions.inspect(key)
    const closed = await sessions.closeOf(key, id === undefined ? {} : { only: id })
    log.info(
      {
        event: 'sessions.closed',
        by: 'operator',
        user: user.username,
        userId: user.id,
        source: user.source,
        closed,
        unreadable,
        ...(id !== undefined && { session: id.slice(0, 64) })
      },
      'sessions closed'
    )
    return { closed, unreadable, of: user }
  }

  async function shownOf(
    user: SignedIn
  ): Promise<{ sessions: ShownSession[]; unreadable: number }> {
    const { listed, unreadable } = await sessions.inspect(keyOf(user))
    const now = sessions.now()
    const shown = listed.map(each => {
      const { id: userId, username } = each.session.identity
      return { userId, user: username, ...describeSession(each, now) }
    })
    return { sessions: shown, unreadable }
  }

  /** Of all users, up to `maxShown` sessions. */
  async function listAll(): Promise<ShownSessions> {
    const users = await sessions.signedIn(maxSignedIn)
    const shown: ShownSession[] = []
    let unreadable = 0
    let at = 0
    while (at < users.length && shown.length < maxShown) {
      const some = await Promise.all(users.slice(at, at + usersAtOnce).map(shownOf))
      for (const each of some) {
        shown.push(...each.sessions)
        unreadable += each.unreadable
      }
      at += usersAtOnce
    }
    return {
      sessions: shown.slice(0, maxShown),
      unreadable,
      isWhole: at >= users.length && shown.length <= maxShown,
      users: users.length
    }
  }

  async function effectOn(user: SignedIn, id: string | undefined): Promise<object> {
    const { listed, unreadable } = await sessions.inspect(keyOf(user))
    if (id === undefined) return { sessions: listed.length, unreadable, users: 1 }
    return { sessions: listed.filter(({ session }) => session.id === id).length, users: 1 }
  }

  async function effectOnAll(): Promise<object> {
    const { sessions: shown, unreadable, isWhole, users } = await listAll()
    return { sessions: shown.length, isWhole, unreadable, users }
  }

  return { closeAll, closeOf, shownOf, listAll, effectOn, effectOnAll }
}

function keyOf({ source, id }: SignedIn) {
  return identityKey({ source, identity: { id } })
}
