/** Requests that reach no hook: Node's parser or the router refused them. */
import type { FastifyBaseLogger } from 'fastify'
import { type ErrorCode, errorKinds } from '../../errors/errors.ts'
import type { Failures } from '../../observability/failures.ts'
import { Trail } from '../../observability/trail.ts'
import { unknownRoute } from './context.ts'

export interface UnroutedRecords {
  readonly log: FastifyBaseLogger
  readonly failures?: Pick<Failures, 'add'> | undefined
}

interface Unrouted {
  readonly requestId: string
  readonly code: ErrorCode
  readonly address: string | undefined
  /** Undefined where the parser gave up before it. */
  readonly method?: string | undefined
  readonly target?: string | undefined
}

/** Writes the log line, and keeps the request. */
export function recordUnrouted({ log, failures }: UnroutedRecords, unrouted: Unrouted): void {
  const { requestId, code, address, method = '', target = '' } = unrouted
  const { status } = errorKinds[code]
  const fields = { event: 'connection.refused', requestId, code, status, address }
  const message = 'refused before it became a request'
  // A connection that was never used is not worth a line.
  if (code === 'request.timeout') return log.debug(fields, message)
  log.info(fields, message)
  failures?.add(
    Object.assign(new Trail(requestId, method, target, address ?? ''), {
      route: unknownRoute,
      status,
      code
    })
  )
}
