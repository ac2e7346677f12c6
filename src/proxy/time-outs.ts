/** The time-outs of the responses of upstreams. */
import type { UpstreamConfig } from '../config/schema/routes.ts'

/** Of one route at its upstream. */
export interface TimeOuts {
  /** The longest pause of a body, from the upstream or to the client. */
  readonly idleMs: number
  /** The same for an event stream. */
  readonly streamIdleMs: number
  /** From the connection to the last byte; not for event streams. */
  readonly totalMs: number
}

/** The keys of a route that count in the place of its upstream's. */
export type TimeOutOverrides = Partial<
  Pick<UpstreamConfig, 'idleTimeout' | 'streamIdle' | 'totalTimeout'>
>

export function timeOutsOf(upstream: UpstreamConfig, route: TimeOutOverrides = {}): TimeOuts {
  return {
    idleMs: route.idleTimeout ?? upstream.idleTimeout,
    streamIdleMs: route.streamIdle ?? upstream.streamIdle,
    totalMs: route.totalTimeout ?? upstream.totalTimeout
  }
}
