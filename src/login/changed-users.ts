/** Effects of changed users files on live sessions: counted before a reload, applied after it. */
import {
  type ChangedUser,
  changedUsers,
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

export type ReviewedSessions = Pick<Sessions, 'list' | 'reviewOf' | 'signedIn'>

/** Enough to keep Redis busy; more would delay requests. */
const maxAtOnce = 50
/**
 * Bound of users whose sessions a start reviews; sessions of others are reviewed on their next use.
 */
const maxSignedIn = 100_000
/** A change of fewer users is taken as meant. */
const minChanged = 5

/**
 * Says in words that more than half of a file's users vanish or change their password at once:
 * more likely a mistake than meant. Undefined where none does.
 */
export function massChange(before: Sources, after: Sources): string | undefined {
  const all = Map.groupBy(fileUsersOf(before), ({ source }) => source)
  const ending = changedUsers(before, after).filter(
    ({ change }) => change === 'removed' || change === 'password changed'
  )
  for (const [source, changed] of Map.groupBy(ending, each => each.source)) {
    const users = all.get(source)?.length ?? 0
    if (changed.length < minChanged || changed.length <= users / 2) continue
    return `${changed.length} of ${users} users of source ${source} vanish or change their password`
  }
  return undefined
}

/** @throws StoreUnavailable */
export async function countEndings(
  sessions: ReviewedSessions,
  before: Sources,
  after: Sources
): Promise<Endings> {
  const review = reviewAgainst(after)
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
  sessions: ReviewedSessions,
  changed: readonly ChangedUser[]
): Promise<ReviewedUser[]> {
  return await forEach(changed, async ({ source, username, key, change }) => {
    const done = await sessions.reviewOf(key)
    return { source, username, change, ...done }
  })
}

/**
 * Closes and renews the sessions of users that changed while this process did not run.
 * @throws StoreUnavailable
 */
export async function reviewSignedIn(
  sessions: ReviewedSessions,
  sources: Sources
): Promise<ReviewedUser[]> {
  const changeOf = changeSince(sources)
  const signedIn = await sessions.signedIn(maxSignedIn)
  const reviewed = await forEach(signedIn, async ({ source, id, username }) => {
    const change = changeOf(source, username)
    if (change === undefined) return []
    const done = await sessions.reviewOf(identityKey({ source, identity: { id } }))
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
