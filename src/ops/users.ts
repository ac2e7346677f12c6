/** Signed-in users and their sessions: finds, lists and ends them. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { describeSession } from '../session/describe.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { type SignedIn, type UserId, userKey } from '../session/types.ts'
import type { Desk } from './desk.ts'
import { addAct, addRead } from './routes.ts'
import {
  type ClosedAnswer,
  closedAnswer,
  closeSessionsBody,
  type NamedUser,
  type SessionsAnswer,
  sessionsAnswer,
  sessionsQuery,
  type ShownSession
} from './schemas.ts'

type Query = Static<typeof sessionsQuery>

const ofClose =
  'Name the sessions: {"user": "ID or NAME"}, {"user": "…", "id": "SESSION"} or ' +
  '{"everyone": true}; with {"by": "id"} or "name", and {"source": "NAME"}, if several users fit.'
const ofList =
  'Name a user: ?user=ID-or-NAME, with &by=id or &by=name and &source=NAME, ' +
  'or none for all sessions.'

const maxLatest = 50

export function addOpsSessions(ops: FastifyInstance, desk: Desk) {
  const { sessions } = desk
  const latest = async (search = '', max = maxLatest) => await latestOf(sessions, search, max)

  async function list(query: Query): Promise<SessionsAnswer> {
    const { user, by, source, search, size = String(maxLatest) } = query
    if (user === undefined) {
      if (by !== undefined || source !== undefined) throw malformed(ofList)()
      return await latest(search, Number(size))
    }
    const found = await findNamed(sessions.store, user, query)
    const shown = 'user' in found ? await sessionsOf(sessions, found.user) : []
    return { ...found, user, sessions: shown }
  }

  addRead(ops, {
    path: '/sessions',
    summary: 'Live sessions of a user, or of the users who signed in last.',
    hint: ofList,
    query: sessionsQuery,
    answer: sessionsAnswer,
    read: list
  })
  addAct(ops, {
    path: '/sessions/close',
    kind: 'sessions.close',
    summary: 'Closes one session, all of a user, or everybody’s.',
    hint: ofClose,
    body: closeSessionsBody,
    answer: closedAnswer,
    run: async body => await closeSessions(desk, body)
  })
  return { latest, ofUser: async (user: UserId) => await sessionsOf(sessions, user) }
}

/** Ends sessions of a user, at their back-ends too. @returns how many were alive */
export async function endSessions({ sessions, signOut }: Desk, user: SignedIn, id?: string) {
  const ended = await sessions.endOf(user, id === undefined ? {} : { only: id })
  signOut(ended.sessions)
  return ended.closed
}

async function closeSessions(
  desk: Desk,
  body: Static<typeof closeSessionsBody>
): Promise<ClosedAnswer> {
  const { sessions, log } = desk
  const { user, by, source, id, everyone = false } = body
  if (everyone) {
    if ([user, by, source].some(each => each !== undefined)) throw malformed(ofClose)()
    await sessions.store.endAll()
    log.info({ event: 'sessions.closed', by: 'operator', everyone }, 'all sessions closed')
    return { closed: 'everyone' }
  }
  if (user === undefined) throw malformed(ofClose)()
  const found = await findNamed(sessions.store, user, body)
  if (!('user' in found)) return { closed: 0, ...found }
  const { id: userId, username } = found.user
  const closed = await endSessions(desk, found.user, id)
  log.info(
    {
      event: 'sessions.closed',
      by: 'operator',
      user: username,
      userId,
      source: found.user.source,
      closed,
      ...(id !== undefined && { session: id.slice(0, 64) })
    },
    'sessions closed'
  )
  return { closed, of: found.user }
}

type Store = Pick<SessionStore, 'scan'>

/**
 * Users who fit, each once: their name may have changed between two sign-ins.
 * @param text a part of the name or id of all who fit
 */
export async function findUsers(
  store: Store,
  text: string,
  fits: (user: SignedIn) => boolean,
  max = Infinity
): Promise<SignedIn[]> {
  const found = new Map<string, SignedIn>()
  for await (const users of store.scan(text)) {
    for (const user of users) if (fits(user)) found.set(userKey(user), user)
    if (found.size >= max) break
  }
  return [...found.values()].slice(0, max)
}

/** The user whom an operator means, or those who may be meant. */
async function findNamed(
  store: Store,
  user: string,
  { by, source }: NamedUser
): Promise<{ user: SignedIn } | Pick<SessionsAnswer, 'near' | 'candidates'>> {
  const isOne = ({ id, username }: SignedIn) => id === user || username === user
  const all = await findUsers(store, user, isOne)
  const named = all.filter(({ id, username }) => (by === 'name' ? username : id) === user)
  const fitting = (by === undefined ? all : named).filter(
    each => source === undefined || each.source === source
  )
  const [first] = fitting
  if (first === undefined) {
    return { near: by === undefined ? all : all.filter(each => !named.includes(each)) }
  }
  return fitting.length > 1 ? { candidates: fitting } : { user: first }
}

/** The sessions of the users who signed in last, or of some whose name or id has the text. */
async function latestOf(sessions: Sessions, text: string, max: number) {
  const wanted = text.toLowerCase()
  const hasText = ({ username, id }: SignedIn) =>
    [username, id].some(each => each.toLowerCase().includes(wanted))
  const { total, users } = await sessions.store.signedIn(text === '' ? max : 0)
  const shown = text === '' ? users : await findUsers(sessions.store, text, hasText, max)
  const all = await Promise.all(shown.map(user => sessionsOf(sessions, user)))
  return { sessions: all.flat(), users: total, isWhole: shown.length === total }
}

/** All sessions of one user. */
async function sessionsOf(sessions: Sessions, user: UserId): Promise<ShownSession[]> {
  const listed = await sessions.list(user)
  const times = sessions.times()
  return listed.map(live => {
    const { id: userId, username } = live.session.identity
    return { userId, user: username, ...describeSession(live, times) }
  })
}
