import { setTimeout as wait } from 'node:timers/promises'
import {
  changedUsers,
  type ReviewedUser,
  reviewChanged,
  reviewSignedIn,
  type Sources
} from '../login/file-users.ts'
import type { Log } from '../services/services.ts'
import type { PublicServer } from './server.ts'

const reviewAgainMs = 500

const notCompared =
  'sessions could not be compared with the users files: ' +
  'each is when it is used next, and all are once the store is back'

export function createUserReview(
  { generations, services: { sessions, log } }: PublicServer,
  isClosed: () => boolean
) {
  let isRunning = false

  /** For changes while the gateway did not run, or the store was away: tries until it answers. */
  async function reviewAll(): Promise<void> {
    if (isRunning) return
    isRunning = true
    let reviewed: Sources | undefined
    // A reload may have changed the users meanwhile.
    while (!isClosed() && reviewed !== generations.current.config) {
      const { config } = generations.current
      try {
        logReview(log, await reviewSignedIn(sessions, config))
        reviewed = config
      } catch {
        await wait(reviewAgainMs, undefined, { ref: false })
      }
    }
    isRunning = false
  }

  async function reviewUsers(before: Sources, after: Sources): Promise<readonly string[]> {
    try {
      return logReview(log, await reviewChanged(sessions, changedUsers(before, after)))
    } catch (err) {
      log.warn({ err }, notCompared)
      void reviewAll()
      return [notCompared]
    }
  }

  return { reviewUsers, reviewAll }
}

function logReview(log: Log, reviewed: readonly ReviewedUser[]): readonly string[] {
  return reviewed.map(({ source, username, change, closed }) => {
    const sessions = closed === 1 ? 'session' : 'sessions'
    const line = `users.${username} ${change}; ${closed} ${sessions} closed`
    log.info({ event: 'users.changed', source, user: username, change, closed }, line)
    return line
  })
}
