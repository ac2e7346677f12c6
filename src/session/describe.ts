/** Sessions as lists show them. */
import type { Session } from './record.ts'

export interface Listed {
  readonly session: Session
  /** Exact to a minute: that is how often use is written down. */
  readonly lastUsedAt: number
  readonly idleEnd: number
}

/** Whole seconds, rounded down: better a second early than late. */
export function secondsLeft (until: number): number {
  return Math.max(0, Math.floor((until - Date.now()) / 1000))
}

/** Nothing in it opens anything. */
export function describeSession ({ session, lastUsedAt, idleEnd }: Listed) {
  return {
    id: session.id,
    startedAt: new Date(session.createdAt).toISOString(),
    lastUsedAt: new Date(lastUsedAt).toISOString(),
    idleIn: secondsLeft(Math.min(idleEnd, session.absoluteEnd)),
    absoluteIn: secondsLeft(session.absoluteEnd),
    address: session.address,
    agent: session.agent,
    source: session.source
  }
}
