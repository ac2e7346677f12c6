/** The answer of a sign-in that config writes; it never holds the credential of the session. */
import type { FastifyReply } from 'fastify'
import type { SignInResult } from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { SessionTimes } from '../../session/describe.ts'
import type { Session } from '../../session/record.ts'
import type { Answer } from '../../shaping/answer.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { sendAnswer } from './send-answer.ts'

/** A user, and the source that vouches for its password. */
export interface VouchedUser {
  readonly source: string
  readonly result: Extract<SignInResult, { readonly vouched: true }>
}

/** The session that a sign-in would open, for checks before it is opened. */
export function sessionBefore({ source, result }: VouchedUser, now: number): Session {
  return {
    id: '',
    identity: result.identity,
    source,
    ...(result.credential && { credential: result.credential }),
    remembered: false,
    createdAt: now,
    absoluteEnd: now,
    idleMs: 0,
    address: '',
    agent: ''
  }
}

/**
 * Called before the session is opened, so that none is left behind.
 * @throws GatewayError `upstream.invalid` for an answer with a secret of the session's credential,
 * such as a token in a member of the profile
 */
export function refuseLeakingAnswer(answer: Answer | undefined, session: Session): void {
  if (answer === undefined) return
  const { createdAt: now, credential } = session
  const value = answer.render({ session, idleEnd: now, now, aheadMs: 0 })
  refuseLeak(value, credential, 'endpoints.login.answer')
}

/** Sends the answer for the session that was opened. */
export function sendLoginAnswer(
  reply: FastifyReply,
  answer: Answer,
  envelope: Envelope,
  { session, times }: { readonly session: Session; readonly times: SessionTimes }
): FastifyReply {
  const idleEnd = session.createdAt + session.idleMs
  return sendAnswer(
    reply,
    answer,
    envelope.success(answer.render({ session, idleEnd, ...times }), undefined, answer.placement)
  )
}
