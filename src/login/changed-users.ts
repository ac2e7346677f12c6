/**
 * What a change of users files does to live sessions: foreseen before a reload, carried out after
 * it.
 */
import {
  type ChangedUser,
  changeSince,
  fileUsersOf,
  reviewAgainst,
  type Sources,
  type UserChange
} from './file-users.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Sessions } from '../session/session.ts'

export interface Endings {
  /** Sessions that the change would end. */
  readonly ending: number
  /** All live sessions of file users. */
  readonly live: number
}

export interface ReviewedUser {
  readonly source: string
  readonly username: string
  readonly change: UserChange
  readonly closed: number
  readonly renewed: number
}

type Asked = Pick<Sessions, 'list' | 'reviewOf' | 'signedIn'>

/** Enough to keep Redis busy, and few enough to let requests pass. */
const maxAtOnce = 50
/** Sign-ins that a start looks at; sessions of the others are judged when they are used. */
const maxSignedIn = 100_000
const minEnding = 10

/** Only what the decision needs goes from one process to another. */
export function sourcesOf({
  gateway: {
    login: { sources }
  },
  users
}: Sources): Sources {
  return { gateway: { login: { sources } }, users }
}

/** Whether so many sessions would end that somebody should say that it is meant. */
export function isMassClosing({ ending, live }: Endings): boolean {
  return ending >= minEnding && ending > live / 2
}

/** @throws StoreUnavailable */
export async function countEndings(
  sessions: Asked,
  before: Sources,
  after: Sources
): Promise<Endings> {
  const review = reviewAgainst(before, after)
  const counts = await forEach(fileUsersOf(before), async ({ key }) => {
    const listed = await sessions.list(key)
    const ending = listed.filter(({ session }) => review(session) === 'refused').length
    return { ending, live: listed.length }
  })
  return {
    ending: counts.reduce((sum, { ending }) => sum + ending, 0),
    live: counts.reduce((sum, { live }) => sum + live, 0)
  }
}

/** Closes and renews the sessions of users that changed. @throws StoreUnavailable */
export async function reviewChanged(
  sessions: Asked,
  changed: readonly ChangedUser[]
): Promise<ReviewedUser[]> {
  return await forEach(changed, async ({ source, username, key, change }) => {
    const done = await sessions.reviewOf(key)
    return { source, username, change, ...done }
  })
}

/**
 * The same for what changed while this process did not run. Users of the files are among those who
 * are looked at, since a version that kept no list of who is signed in may have opened sessions.
 * @throws StoreUnavailable
 */
export async function reviewSignedIn(sessions: Asked, sources: Sources): Promise<ReviewedUser[]> {
  const changeOf = changeSince(sources)
  const signedIn = await sessions.signedIn(maxSignedIn)
  const users = [
    ...fileUsersOf(sources),
    ...signedIn.map(({ source, id, username }) => {
      return { source, username, key: identityKey({ source, identity: { id } }) }
    })
  ]
  const distinct = new Map(users.map(user => [`${user.key} ${user.username}`, user]))
  const reviewed = await forEach([...distinct.values()], async ({ source, username, key }) => {
    const change = changeOf(source, username)
    if (change === undefined) return []
    const done = await sessions.reviewOf(key)
    const isOther = done.closed > 0 && change === 'roles or profile changed'
    return [{ source, username, change: isOther ? ('password changed' as const) : change, ...done }]
  })
  return reviewed.flat().filter(({ closed, renewed }) => closed + renewed > 0)
}

/** `users.bob removed; 2 sessions closed` */
export function describeReview({ username, change, closed, renewed }: ReviewedUser): string {
  const sessions = (count: number) => `${count} session${count === 1 ? '' : 's'}`
  const done =
    change === 'roles or profile changed'
      ? `${sessions(renewed)} updated`
      : `${sessions(closed)} closed`
  return `users.${username} ${change}; ${done}`
}

async function forEach<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += maxAtOnce) {
    results.push(...(await Promise.all(items.slice(at, at + maxAtOnce).map(work))))
  }
  return results
}
