/** The sessions of a process: held against the users files, counted, and their ends recorded. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { FileUsers } from '../login/file-users.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import type { Metrics } from '../observability/metrics.ts'
import { createSeal } from '../session/seal.ts'
import { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import type { EndCause } from '../session/types.ts'
import { recordRevocations } from './audit.ts'
import type { Log } from './logger.ts'

interface Options {
  readonly gateway: GatewayConfig
  readonly store: SessionStore
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
  readonly metrics: Metrics
  readonly log: Log
  readonly ledger: Ledger | undefined
}

export function openSessions(options: Options): Sessions {
  const { gateway, store, fileUsers, secrets, metrics, log, ledger } = options
  const { session } = gateway
  return new Sessions({
    store,
    review: fileUsers.review,
    seal: createSeal(secrets),
    lifeTimes: session,
    perUser: session.perUser,
    ...countSessions(metrics),
    ...(ledger && { onRevoked: recordRevocations(ledger) }),
    onTouchFailed: err =>
      log.debug({ err }, 'a session was used, but its idle clock could not be set')
  })
}

function countSessions(metrics: Metrics) {
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
    onOpened: (source: string) => opened.labels(source).inc(),
    onEnded: (cause: EndCause, count: number) => closed.labels(cause).inc(count)
  }
}
