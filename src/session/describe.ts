import { steadyNow, wallTime } from '../steady-clock.ts'
import type { Live } from './types.ts'

/** Whole seconds, rounded down: better a second early than late. */
export function secondsLeft(until: number): number {
  return Math.max(0, Math.floor((until - steadyNow()) / 1000))
}

/** Nothing in it opens anything. Use is exact to a minute: so often it is written down. */
export function describeSession(live: Live) {
  const { session, idleEnd } = live
  const { id, createdAt, idleMs, address, agent, source } = session
  return {
    id,
    startedAt: new Date(createdAt).toISOString(),
    lastUsedAt: new Date(wallTime(idleEnd - idleMs)).toISOString(),
    ...leftOf(live),
    address,
    agent,
    source
  }
}

export function timeLeft(live: Live) {
  const { id, identity } = live.session
  return {
    id,
    user: { id: identity.id, username: identity.username, name: identity.name },
    roles: identity.roles,
    ...leftOf(live)
  }
}

function leftOf({ idleEnd, absoluteEnd }: Live) {
  return {
    idleIn: secondsLeft(Math.min(idleEnd, absoluteEnd)),
    absoluteIn: secondsLeft(absoluteEnd)
  }
}
