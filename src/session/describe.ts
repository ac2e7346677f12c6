/** Sessions as lists show them. */
import type { Live } from './evaluate.ts'
import type { Session } from './record.ts'

export interface Listed {
  readonly session: Session
  /** Exact to a minute: that is how often use is written down. */
  readonly lastUsedAt: number
  readonly idleEnd: number
}

/** The present, for what is told of sessions. */
export interface SessionTimes {
  /** By the clock of the sessions. */
  readonly now: number
  /** By how much the wall clock is ahead of it. */
  readonly aheadMs: number
}

export function describeLive({ session, idleEnd }: Live): Listed {
  return { session, idleEnd, lastUsedAt: idleEnd - session.idleMs }
}

/** Whole seconds, rounded down: better a second early than late. */
export function secondsLeft(until: number, now: number): number {
  return Math.max(0, Math.floor((until - now) / 1000))
}

/** Nothing in it opens anything. */
export function describeSession(
  { session, lastUsedAt, idleEnd }: Listed,
  { now, aheadMs }: SessionTimes
) {
  return {
    id: session.id,
    startedAt: new Date(session.createdAt + aheadMs).toISOString(),
    lastUsedAt: new Date(lastUsedAt + aheadMs).toISOString(),
    idleIn: secondsLeft(Math.min(idleEnd, session.absoluteEnd), now),
    absoluteIn: secondsLeft(session.absoluteEnd, now),
    address: session.address,
    agent: session.agent,
    source: session.source
  }
}

/** The body of the session endpoints: the user, the roles and the time until the session ends. */
export function timeLeft({ session: { id, identity, absoluteEnd }, idleEnd }: Live, now: number) {
  return {
    id,
    user: { id: identity.id, username: identity.username, name: identity.name },
    roles: identity.roles,
    idleIn: secondsLeft(Math.min(idleEnd, absoluteEnd), now),
    absoluteIn: secondsLeft(absoluteEnd, now)
  }
}
