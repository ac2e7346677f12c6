/** Counts sessions as they are opened and end. */
import type { Metrics } from '../observability/metrics.ts'
import type { EndCause } from '../session/session.ts'

export function countSessions(metrics: Metrics): {
  readonly onOpened: (source: string) => void
  readonly onEnded: (cause: EndCause, count: number) => void
} {
  const opened = metrics.counter(
    'console_gateway_sessions_opened_total',
    'Sessions that sign-ins opened, by credential source.',
    ['source']
  )
  const closed = metrics.counter(
    'console_gateway_sessions_closed_total',
    'Sessions that were closed, or found over by their own time, by reason. Those that nobody ' +
      'asked for again, and those that ended with everyone, are not counted.',
    ['reason']
  )
  return {
    onOpened: source => opened.labels(source).inc(),
    onEnded: (cause, count) => closed.labels(cause).inc(count)
  }
}
