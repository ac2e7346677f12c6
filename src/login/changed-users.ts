/** The effects of changed users files on live sessions. */
import type { Sessions } from '../session/sessions.ts'
import {
  type ChangedUser,
  changedUsers,
  fileUsersOf,
  maybeChanged,
  type Sources
} from './file-users.ts'

export interface ReviewedUser extends ChangedUser {
  /** Sessions. */
  readonly closed: number
}

export type ReviewedSessions = Pick<Sessions, 'list' | 'endReviewed' | 'signedIn'>

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
  const ending = changedUsers(before, after).filter(({ change }) => change !== 'disabled')
  for (const [source, changed] of Map.groupBy(ending, each => each.source)) {
    const users = all.get(source)?.length ?? 0
    if (changed.length < minChanged || changed.length <= users / 2) continue
    return `${changed.length} of ${users} users of source ${source} vanish or change their password`
  }
  return undefined
}

/** Ends the sessions of users that changed. @throws StoreUnavailable */
export async function reviewChanged(
  sessions: ReviewedSessions,
  changed: readonly ChangedUser[]
): Promise<ReviewedUser[]> {
  return await forEach(changed, async user => {
    return { ...user, closed: await sessions.endReviewed(user) }
  })
}

/**
 * Ends the sessions of users that changed while this process did not run.
 * @throws StoreUnavailable
 */
export async function reviewSignedIn(
  sessions: ReviewedSessions,
  sources: Sources
): Promise<ReviewedUser[]> {
  const { users } = await sessions.signedIn(maxSignedIn)
  const reviewed = await reviewChanged(sessions, maybeChanged(sources, users))
  return reviewed.filter(({ closed }) => closed > 0)
}

/** `users.bob removed; 2 sessions closed` */
export function describeReview({ username, change, closed }: ReviewedUser): string {
  return `users.${username} ${change}; ${closed} session${closed === 1 ? '' : 's'} closed`
}

async function forEach<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < items.length; at += maxAtOnce) {
    results.push(...(await Promise.all(items.slice(at, at + maxAtOnce).map(work))))
  }
  return results
}
