import { wallTime } from '../steady-clock.ts'
import type { Live } from './types.ts'

/** Whole seconds, rounded down: better a second early than late. */
export function secondsLeft(until: number, now: number): number {
  return Math.max(0, Math.floor((until - now) / 1000))
}

/** Nothing in it opens anything. Use is exact to a minute: so often it is written down. */
export function describeSession(live: Live, now: number) {
  const { session, idleEnd } = live
  const { id, createdAt, idleMs, address, agent, source } = session
  return {
    id,
    startedAt: new Date(createdAt).toISOString(),
    lastUsedAt: new Date(wallTime(idleEnd - idleMs)).toISOString(),
    ...leftOf(live, now),
    address,
    agent,
    source
  }
}

export function timeLeft(live: Live, now: number) {
  const { id, identity } = live.session
  return {
    id,
    user: { id: identity.id, username: identity.username, name: identity.name },
    roles: identity.roles,
    ...leftOf(live, now)
  }
}

function leftOf({ idleEnd, absoluteEnd }: Live, now: number) {
  return {
    idleIn: secondsLeft(Math.min(idleEnd, absoluteEnd), now),
    absoluteIn: secondsLeft(absoluteEnd, now)
  }
}
