/** Reviews the sessions of changed users at a reload and at the start, and logs the results. */
import { setTimeout as wait } from 'node:timers/promises'
import { changedUsers, type Sources } from '../../login/file-users.ts'
import type { PublicServer } from '../server/public-server.ts'
import { describeReview, type ReviewedUser } from '../../login/changed-users.ts'

interface Log {
  readonly info: (fields: object, message: string) => void
  readonly warn: (fields: object, message: string) => void
}

interface Options {
  readonly publicServer: Pick<PublicServer, 'reviewChanged' | 'reviewSignedIn'>
  readonly log: Log
  readonly isStopping: () => boolean
}

/** Of a change of a whole file the first users are logged, and the number of the others. */
const maxLines = 50
const reviewAgainMs = 500

export function createUserReview({ publicServer, log, isStopping }: Options) {
  /** The sources that were put in force last. */
  let latest: Sources | undefined
  let isDue = false
  let isRunning = false

  async function reviewUsers(before: Sources, after: Sources): Promise<readonly string[]> {
    latest = after
    const changed = changedUsers(before, after)
    return changed.length === 0 ? [] : await logged(publicServer.reviewChanged(changed), after)
  }

  /** For changes while the gateway did not run. The store may start later than the gateway. */
  async function reviewAtStart(sources: Sources): Promise<void> {
    latest ??= sources
    await reviewAll(latest)
  }

  /** Tries again until the store answers. */
  async function reviewAll(sources: Sources): Promise<void> {
    isDue = true
    if (isRunning) return
    isRunning = true
    while (isDue && !isStopping()) {
      isDue = false
      try {
        logReview(log, await publicServer.reviewSignedIn(latest ?? sources))
      } catch {
        isDue = true
        await wait(reviewAgainMs, undefined, { ref: false })
      }
    }
    isRunning = false
  }

  async function logged(
    reviewing: Promise<readonly ReviewedUser[]>,
    sources: Sources
  ): Promise<readonly string[]> {
    try {
      return logReview(log, await reviewing)
    } catch (err) {
      const message =
        'sessions could not be compared with the users files: ' +
        'each is when it is used next, and all are once the store is back'
      log.warn({ err }, message)
      // Other replicas may have older files, and learn of the change only from the store.
      void reviewAll(sources)
      return [message]
    }
  }

  return { reviewUsers, reviewAtStart }
}

function logReview(log: Log, reviewed: readonly ReviewedUser[]): readonly string[] {
  const lines = reviewed.map(describeReview)
  for (const [index, { source, username, change, closed, renewed }] of reviewed
    .slice(0, maxLines)
    .entries()) {
    log.info(
      { event: 'users.changed', source, user: username, change, closed, renewed },
      lines[index] ?? ''
    )
  }
  if (reviewed.length <= maxLines) return lines
  const rest = reviewed.slice(maxLines)
  const closed = rest.reduce((sum, each) => sum + each.closed, 0)
  const more = `and ${rest.length} more users changed; ${closed} sessions closed`
  log.info({ event: 'users.changed', users: rest.length, closed }, more)
  return [...lines.slice(0, maxLines), more]
}
