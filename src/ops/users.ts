import { malformed } from '../errors/errors.ts'
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import {
  type BlockedName,
  blockOf,
  blocks,
  blocksIn,
  forever,
  isBlockOf
} from '../session/blocked-users.ts'
import { describeSession } from '../session/describe.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { accountKey, type SignedIn, type UserId, userKey } from '../session/types.ts'
import { addRoute, type Desk } from './routes.ts'
import { count, flag, forMs, list, name, number, object, optional, text, time } from './schemas.ts'

export type NamedUser = Pick<Static<typeof query>, 'user' | 'by' | 'source'>
export type SessionsAnswer = Static<typeof sessionsAnswer>
export type ShownSession = Static<typeof session>
export type ClosedAnswer = Static<typeof closedAnswer>
export type BlockJson = Static<typeof block>

const user = {
  user: optional(text('Name or id.', { minLength: 1 })),
  by: optional(Type.Enum(['id', 'name'], { description: 'What `user` is; either without it.' })),
  source: optional(text('The credential source; any without it.'))
}
const query = object({
  ...user,
  search: optional(name('Without `user`: a part of name or id.')),
  size: optional(
    text('Without `user`: so many users, or 50.', { pattern: '^([1-9][0-9]{0,2}|1000)$' })
  )
})
const closeBody = object({
  ...user,
  id: optional(text('One session of the user; all without it.')),
  everyone: optional(flag({ description: 'In place of a user.' }))
})

const session = object({
  id: text(),
  user: text(),
  userId: text(),
  source: text(),
  startedAt: time,
  lastUsedAt: time,
  idleIn: number('Seconds until it ends without use.'),
  absoluteIn: number('Seconds until it ends in any case.'),
  address: text(),
  agent: text()
})
const signedIn = object({ source: text(), id: text(), username: text() })
const candidates = optional(list(signedIn, 'Several users fit: name one of them.'))
const sessionsAnswer = object({
  sessions: list(session, 'Those of one user stand together.'),
  candidates,
  users: optional(number('Signed in, whether they fit or not.')),
  isWhole: optional(flag({ description: 'Whether nobody was left out.' }))
})
const closedAnswer = object({
  closed: Type.Union([count, Type.Literal('everyone')]),
  of: optional(signedIn),
  candidates
})

const block = object({ name: text(), source: optional(text()), until: optional(time) })
const blockedName = object({
  name: name('User name or id.'),
  source: optional(name('At this credential source; at any without it.'))
})
const blockBody = object({
  ...blockedName.properties,
  forMs: forMs('until unblocked')
})

const ofClose = 'Name a user by {"user": "ID or NAME"}, or {"everyone": true} alone.'
const maxLatest = 50

export function addUserRoutes(ops: FastifyInstance, desk: Desk): void {
  addRoute(ops, '/sessions', 'Live sessions of a user, or of the users who signed in last.', {
    takes: query,
    answer: sessionsAnswer,
    run: async asked => await listSessions(desk.sessions, asked)
  })
  addRoute(ops, '/sessions/close', 'Closes one session, all of a user, or everybody’s.', {
    kind: 'sessions.close',
    takes: closeBody,
    answer: closedAnswer,
    run: async body => await closeSessions(desk, body)
  })
  addRoute(ops, '/users/blocked', 'Users who are blocked, and until when.', {
    answer: object({ blocked: list(block) }),
    run: async () => ({ blocked: await listBlocks(desk) })
  })
  addRoute(ops, '/users/block', 'Ends the sessions of a user, and refuses sign-ins.', {
    kind: 'users.block',
    takes: blockBody,
    answer: object({ ...block.properties, closed: count }),
    run: async body => await blockUser(desk, body)
  })
  addRoute(ops, '/users/unblock', 'Lets a user sign in again.', {
    kind: 'users.unblock',
    takes: blockedName,
    answer: object({ unblocked: count }),
    run: async ({ name: named, source }) => {
      const { store } = desk.sessions
      const key = accountKey(named)
      const ofName = (await blocksIn(store)).filter(
        each => each.name === key && (source === undefined || each.source === source)
      )
      const lifted = await Promise.all(ofName.map(each => store.removeFrom(blocks, blockOf(each))))
      return { unblocked: lifted.filter(Boolean).length }
    }
  })
}

async function listSessions(sessions: Sessions, asked: Static<typeof query>) {
  const { user: named, by, source, search, size } = asked
  if (named === undefined) {
    if ((by ?? source) !== undefined) throw malformed('`by` and `source` go with `user`.')
    return await latestSessions(sessions, search, size === undefined ? maxLatest : Number(size))
  }
  const fitting = await findNamed(sessions.store, named, asked)
  if (fitting.length > 1) return { candidates: fitting, sessions: [] }
  const all = await Promise.all(fitting.map(each => sessionsOf(sessions, each)))
  return { sessions: all.flat() }
}

async function endSessions({ sessions, signOut }: Desk, of: SignedIn, id?: string) {
  const ended = await sessions.endOf(of, {}, each => id === undefined || each === id)
  signOut(ended.sessions)
  return ended.closed
}

async function closeSessions(desk: Desk, body: Static<typeof closeBody>): Promise<ClosedAnswer> {
  const { user: named, by, source: at, id, everyone = false } = body
  if (everyone) {
    if ([named, by, at, id].some(each => each !== undefined)) throw malformed(ofClose)
    await desk.sessions.store.endAll()
    return { closed: 'everyone' }
  }
  if (named === undefined) throw malformed(ofClose)
  const fitting = await findNamed(desk.sessions.store, named, body)
  const [of] = fitting
  if (of === undefined) return { closed: 0 }
  if (fitting.length > 1) return { closed: 0, candidates: fitting }
  return { closed: await endSessions(desk, of, id), of }
}

/** Users who fit, each once: their name may have changed between two sign-ins. */
async function findUsers(
  store: SessionStore,
  part: string,
  fits: (user: SignedIn) => boolean,
  max = Infinity
): Promise<SignedIn[]> {
  const found = new Map<string, SignedIn>()
  for await (const users of store.scan(part)) {
    for (const each of users) if (fits(each)) found.set(userKey(each), each)
    if (found.size >= max) break
  }
  return [...found.values()].slice(0, max)
}

export async function findNamed(
  store: SessionStore,
  named: string,
  { by, source }: NamedUser = {}
) {
  return await findUsers(store, named, each => {
    const names = { id: each.id, name: each.username }
    const isNamed = by === undefined ? Object.values(names).includes(named) : names[by] === named
    return isNamed && (source === undefined || each.source === source)
  })
}

/** The sessions of the users who signed in last, or of some whose name or id has the text. */
export async function latestSessions(sessions: Sessions, part = '', max = maxLatest) {
  const wanted = part.toLowerCase()
  const hasPart = ({ username, id }: SignedIn) =>
    [username, id].some(each => each.toLowerCase().includes(wanted))
  const { total, users } = await sessions.store.signedIn(part === '' ? max : 0)
  const shown = part === '' ? users : await findUsers(sessions.store, part, hasPart, max)
  const all = await Promise.all(shown.map(each => sessionsOf(sessions, each)))
  return { sessions: all.flat(), users: total, isWhole: shown.length === total }
}

export async function sessionsOf(sessions: Sessions, of: UserId): Promise<ShownSession[]> {
  const listed = await sessions.list(of)
  return listed.map(live => {
    const { id: userId, username } = live.session.identity
    return { userId, user: username, ...describeSession(live) }
  })
}

export async function listBlocks({ sessions }: Desk): Promise<BlockJson[]> {
  return (await blocksIn(sessions.store)).map(({ leftMs, ...of }) => blockJson(of, leftMs))
}

async function blockUser(
  desk: Desk,
  { forMs: ms = forever, ...blocked }: Static<typeof blockBody>
) {
  const { config, sessions } = desk
  const { name: named, source } = blocked
  if (accountKey(named) === '') throw malformed('`name` is blank.')
  const known = Object.keys(config().gateway.login.sources)
  if (source !== undefined && !known.includes(source)) {
    throw malformed(`There is no credential source "${source}", but ${known.join(', ')}.`)
  }
  await sessions.store.addTo(blocks, blockOf(blocked), ms)
  // After it: no sign-in slips between. Names are compared without case and accents: all are read.
  const users = await findUsers(sessions.store, '', isBlockOf(blocked))
  let closed = 0
  for (const each of users) closed += await endSessions(desk, each)
  return { ...blockJson(blocked, ms), closed }
}

function blockJson({ name: named, source }: BlockedName, leftMs: number): BlockJson {
  return {
    name: named,
    ...(source !== undefined && { source }),
    ...(leftMs < forever / 2 && { until: new Date(Date.now() + leftMs).toISOString() })
  }
}
