/** The times after which a session is over: unused, and in any case. */
import type { Duration } from '../config/schema/primitives.ts'
import type { NewSession } from './types.ts'

interface LifeTime {
  readonly idle: Duration
  readonly absolute: Duration
}

export interface LifeTimes extends LifeTime {
  readonly remembered: Partial<LifeTime>
}

export function timesOf(
  { remembered }: NewSession,
  { idle, absolute, remembered: longer }: LifeTimes
) {
  const absoluteMs = (remembered ? longer.absolute : undefined) ?? absolute
  const idleMs = (remembered ? longer.idle : undefined) ?? idle
  return { absoluteMs, idleMs: Math.min(idleMs, absoluteMs) }
}
