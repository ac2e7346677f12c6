/** Requests that reach no hook: Node's parser or the router refused them. */
import type { FastifyBaseLogger } from 'fastify'
import { type ErrorCode, errorKinds } from '../../errors/errors.ts'
import type { Failures } from '../../observability/failures.ts'
import type { Trail } from '../../observability/trail.ts'
import { unknownRoute } from './context.ts'

export interface UnroutedRecords {
  readonly log: FastifyBaseLogger
  readonly failures?: Pick<Failures, 'add'> | undefined
}

/** Writes the log line, and keeps the request. */
export function recordUnrouted(
  { log, failures }: UnroutedRecords,
  trail: Trail,
  code: ErrorCode
): void {
  const { requestId, address } = trail
  const { status } = errorKinds[code]
  const fields = { event: 'connection.refused', requestId, code, status }
  const message = 'refused before it became a request'
  const line = address === '' ? fields : { ...fields, address }
  // A connection that was never used is not worth a line.
  if (code === 'request.timeout') return log.debug(line, message)
  log.info(line, message)
  failures?.add(Object.assign(trail, { route: unknownRoute, status, code }))
}
