/** The sessions at back-ends that a sign-in leaves there when it opens none of the gateway. */
import type { FastifyRequest } from 'fastify'
import { abandonSession } from '../hooks/session.ts'
import { type CredentialSource, signOutAtSource } from '../../login/credential-source.ts'
import type { Live } from '../../session/evaluate.ts'
import type { Session } from '../../session/record.ts'
import type { Sessions } from '../../session/session.ts'
import type { Answer } from '../../shaping/answer.ts'
import { refuseLeakingAnswer, sessionBefore, type VouchedUser } from './login-answer.ts'

interface Options {
  readonly sources: readonly CredentialSource[]
  readonly sessions: Sessions
  readonly answer: Answer | undefined
}

/**
 * Called with a right password, before the session is opened.
 * @param leaving aborted when the client leaves: nobody would get the session
 * @throws GatewayError `upstream.invalid` for a secret in the answer; the reason of `leaving`. The
 *   back-end's own session is then ended.
 */
export async function refuseBeforeOpening(
  options: Options,
  request: FastifyRequest,
  user: VouchedUser,
  leaving: AbortSignal
): Promise<void> {
  const session = sessionBefore(user, options.sessions.now())
  try {
    leaving.throwIfAborted()
    refuseLeakingAnswer(options.answer, session)
  } catch (error) {
    signOutAtSource(options, session, request)
    throw error
  }
}

/**
 * A session as the store has it now: its token may have been renewed while the password of the next
 * one was checked. As it was, where the store does not tell.
 */
export async function rereadFormer(
  { sessions }: Options,
  former: Live | undefined
): Promise<Live | undefined> {
  if (former === undefined) return undefined
  const current = await sessions.reread(former).catch(() => undefined)
  return current !== undefined && 'live' in current ? current.live : former
}

/** Ends a session whose client left while it was opened: nobody has its cookie. */
export async function endUnread(
  options: Options,
  request: FastifyRequest,
  session: Session
): Promise<void> {
  try {
    await abandonSession(request, options.sessions)
  } finally {
    signOutAtSource(options, session, request)
  }
}

/** Ends at back-ends what a sign-in leaves there whose session could not be opened. */
export async function endUnopened(
  options: Options,
  request: FastifyRequest,
  user: VouchedUser,
  former: Live | undefined
): Promise<void> {
  const { sessions } = options
  // Without a session of ours, nobody would ever end that of the back-end.
  signOutAtSource(options, sessionBefore(user, sessions.now()), request)
  if (former === undefined) return
  // Its end comes first, so it may have ended all the same; else the browser goes on with it.
  const current = await sessions.reread(former).catch(() => undefined)
  if (current !== undefined && 'ended' in current) {
    signOutAtSource(options, former.session, request)
  }
}
