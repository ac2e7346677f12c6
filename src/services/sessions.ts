/** The sessions of a process: held against the users files, counted, and their ends recorded. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { FileUsers } from '../login/file-users.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import type { Metrics } from '../observability/metrics.ts'
import { createSeal } from '../session/seal.ts'
import { createSessions, type EndCause, type Sessions } from '../session/session.ts'
import type { SessionStore } from '../session/store.ts'
import { recordRevocations } from './audit.ts'
import type { Log } from './logger.ts'
import type { Shared } from './shared.ts'

interface Options {
  readonly gateway: GatewayConfig
  readonly shared: Shared | undefined
  readonly store: SessionStore
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
  readonly metrics: Metrics
  readonly log: Log
  readonly ledger: Ledger | undefined
}

const epochForgotten =
  'the session store forgot how often all sessions were ended, and is told again: ' +
  'until it has taken that, sessions answer 503'

export function openSessions(options: Options): Sessions {
  const { gateway, shared, store, fileUsers, secrets, metrics, log, ledger } = options
  const { session } = gateway
  const forgotten = metrics.counter(
    'console_gateway_session_epoch_forgotten_total',
    'How often the session store was found to have forgotten when everyone was signed out.'
  )
  return createSessions({
    store,
    reviewer: fileUsers,
    seal: createSeal(secrets),
    lifeTimes: session,
    perUser: session.perUser,
    maxStalenessMs: session.staleness,
    ...shared?.times,
    ...countSessions(metrics),
    ...(ledger && { onRevoked: recordRevocations(ledger) }),
    onTouchFailed: err =>
      log.debug({ err }, 'a session was used, but its idle clock could not be set'),
    onEpochForgotten: epochs => {
      forgotten.inc()
      log.error({ event: 'session.epoch-forgotten', ...epochs }, epochForgotten)
    }
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
