/** The end of a sign-in that no credential source vouches for. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, GatewayError, toGatewayError } from '../../errors/errors.ts'
import type { Refusal, RefusalKind } from '../../login/credential-source.ts'
import { clientAddress } from '../hooks/address.ts'
import { languageOf, replyWith } from '../hooks/errors.ts'
import type { AttemptHandle } from './guard.ts'
import type { Undecided } from './vouching.ts'

const codeOfRefusal = {
  'challenge': 'login.challenge',
  'blocked': 'login.blocked',
  'expired-password': 'login.expired-password'
} as const satisfies Record<RefusalKind, ErrorCode>

/** Within an hour, so many attempts are no failures of an account; the default of challenges. */
const maxUndecided = 50

/**
 * Counts an attempt that a source failed to decide. An unreachable source must not count as a
 * failed sign-in. But if another one refused the password, its users could be guessed at without
 * end meanwhile: the address counts at once, the account after a bound. A request that made the
 * source fail counts as refused.
 */
export async function countUndecided(
  attempt: AttemptHandle,
  { failure, wasEvaluated }: Undecided
): Promise<void> {
  if (!wasEvaluated) return await attempt.refund()
  const isOfClient = toGatewayError(failure).status < 500
  await attempt.undecided(isOfClient ? 0 : maxUndecided)
}

/** Counts a refused attempt, and logs it. */
export async function countRefusal(
  attempt: AttemptHandle,
  { kind, maxChallenges = 0 }: Refusal,
  request: FastifyRequest,
  username: string
): Promise<void> {
  const subject = { user: username, address: clientAddress(request) }
  if (kind === 'challenge' && !(await attempt.undecided(maxChallenges))) {
    const message = 'sign-in refused before the password was checked'
    return request.log.info({ event: 'login.challenge', ...subject }, message)
  }
  if (kind !== 'challenge') await attempt.refused()
  const outcome = kind !== undefined && { outcome: kind }
  request.log.info({ event: 'login.refused', ...subject, ...outcome }, 'sign-in refused')
}

export function refusalError({ kind, message }: Refusal): GatewayError {
  const code = kind === undefined ? 'login.refused' : codeOfRefusal[kind]
  return new GatewayError(code, message === undefined ? {} : { message })
}

/** Undefined for the code of a wrong password, and of errors that are no refusals. */
export function refusalKindOf(code: ErrorCode): RefusalKind | undefined {
  const kinds = Object.keys(codeOfRefusal) as RefusalKind[]
  return kinds.find(kind => codeOfRefusal[kind] === code)
}

/**
 * Refuses a user whom an operator has blocked, though the password was right.
 * @param type the kind of sign-in that the console sent
 * @throws `error`, unless refusals have the status 200
 */
export function refuseBlocked(reply: FastifyReply, type: string, error: GatewayError): void {
  const { request } = reply
  const subject = { user: request.actor, address: clientAddress(request) }
  const fields = { event: 'login.refused', ...subject, outcome: 'blocked', code: error.code }
  request.log.info(fields, 'sign-in refused: an operator has blocked the user')
  const { login } = request.server.gateway.config.gateway
  if (login.refusedStatus === 401) throw error
  return refuseWithStatus200(reply, type, error)
}

/**
 * For consoles that only read `status: error` in the body.
 * @param type the kind of sign-in that the console sent
 */
export function refuseWithStatus200(reply: FastifyReply, type: string, error: GatewayError): void {
  const { request } = reply
  const { envelope } = request.server.gateway
  const reader = { requestId: request.id, language: languageOf(request) }
  replyWith(reply, new GatewayError(error.code, { ...error.detail, status: 200 }), {
    body: envelope.loginRefused(error, type, reader),
    type: envelope.errorType,
    status: 200
  })
}
