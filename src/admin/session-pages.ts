/** Pages of all live sessions, in the order of their users' names. */
import { describeSession } from '../session/describe.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SignedIn, UserId } from '../session/types.ts'
import { eachOnce, maxSignedIn } from './find-users.ts'

/** A session as operators see it, with its user. */
export type ShownSession = ReturnType<typeof describeSession> & {
  readonly userId: string
  readonly user: string
}

export interface PageQuery {
  /** A part of the user's name or id, in either case. */
  readonly search?: string
  readonly size?: number
  /** `next` of the page before. */
  readonly after?: string
}

export interface SessionPage {
  readonly sessions: readonly ShownSession[]
  /** Whether nothing was left out. */
  readonly isWhole: boolean
  /** Users who are signed in and fit the search, on all pages. */
  readonly users: number
  /** For the next page; missing on the last. */
  readonly next?: string
}

export type Listing = Pick<Sessions, 'store' | 'list' | 'times'>

export const maxPageSize = 1000
const usersAtOnce = 50
const maxLatest = 50
/** Of the last that signed in, so many are searched: a search costs the event loop 10 ms at most. */
const maxSearched = 2000
/** Users whose sessions are all over fill no page, and must not make one take for ever. */
const maxInspected = 2000

export async function sessionPage(sessions: Listing, query: PageQuery): Promise<SessionPage> {
  const { search = '', size = maxPageSize, after } = query
  const wanted = search.toLowerCase()
  const users = (await sessions.store.signedIn(maxSignedIn)).users
    .filter(user => hasText(user, wanted))
    .map(user => ({ user, place: placeOf(user) }))
    .toSorted((a, b) => (a.place < b.place ? -1 : 1))
  const start = after === undefined ? 0 : users.findIndex(({ place }) => place > after)
  const rest = start === -1 ? [] : users.slice(start)
  const shown: ShownSession[] = []
  let taken = 0
  const isFull = () => shown.length >= size || taken >= Math.min(rest.length, maxInspected)
  while (!isFull()) {
    const some = rest.slice(taken, taken + usersAtOnce)
    for (const each of await Promise.all(some.map(({ user }) => sessionsOf(sessions, user)))) {
      if (isFull()) break
      shown.push(...each)
      taken++
    }
  }
  const last = taken < rest.length ? rest[taken - 1] : undefined
  return {
    sessions: shown,
    isWhole: last === undefined && start === 0,
    users: users.length,
    ...(last !== undefined && { next: last.place })
  }
}

/**
 * The users who signed in last with their sessions, those whose name or id has the text.
 * @param exact users who need not be among the last
 */
export async function latestSessions(sessions: Listing, text = '', exact: readonly UserId[] = []) {
  const { total, users } = await sessions.store.signedIn(text === '' ? maxLatest : maxSearched)
  const fitting = users.filter(user => hasText(user, text.toLowerCase()))
  const all = eachOnce<UserId>([...exact, ...fitting.slice(0, maxLatest)])
  const shown = await Promise.all(all.map(each => sessionsOf(sessions, each)))
  return { sessions: shown.flat(), total }
}

/** All sessions of one user. */
export async function sessionsOf(sessions: Listing, user: UserId): Promise<ShownSession[]> {
  const listed = await sessions.list(user)
  const times = sessions.times()
  return listed.map(each => {
    const { id: userId, username } = each.session.identity
    return { userId, user: username, ...describeSession(each, times) }
  })
}

function hasText({ username, id }: SignedIn, lower: string): boolean {
  return [username, id].some(each => each.toLowerCase().includes(lower))
}

/** Users stand in the order of these texts, each of which one user has. */
function placeOf({ username, source, id }: SignedIn): string {
  return JSON.stringify([username, source, id])
}
