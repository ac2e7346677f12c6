/** The sessions at back-ends that a sign-in leaves there when it opens none of the gateway. */
import type { FastifyRequest } from 'fastify'
import { signOutAtSource } from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { Live, Session } from '../../session/types.ts'
import { abandonSession } from '../hooks/session.ts'
import type { VouchedUser } from './vouching.ts'

/** The session that a sign-in would open, for checks before it is opened. */
export function sessionBefore({ source, result }: VouchedUser, now: number): Session {
  return {
    id: '',
    identity: result.identity,
    source,
    ...(result.credential && { credential: result.credential }),
    remembered: false,
    createdAt: now,
    idleMs: 0,
    address: '',
    agent: ''
  }
}

/**
 * Called with a right password, before the session is opened.
 * @param leaving aborted when the client leaves: nobody would get the session
 * @throws GatewayError `upstream.invalid` for a secret of the session's credential in the answer,
 *   such as a token in a member of the profile; the reason of `leaving`. The back-end's own session
 *   is then ended.
 */
export async function refuseBeforeOpening(
  request: FastifyRequest,
  user: VouchedUser,
  leaving: AbortSignal
): Promise<void> {
  const { gateway } = request.server
  const now = gateway.sessions.now()
  const session = sessionBefore(user, now)
  try {
    leaving.throwIfAborted()
    const value = gateway.answers.login?.render({
      session,
      idleEnd: now,
      absoluteEnd: now,
      now,
      aheadMs: 0
    })
    refuseLeak(value, session.credential, 'endpoints.login.answer')
  } catch (error) {
    signOutAtSource(gateway, session, request)
    throw error
  }
}

/**
 * The browser's session as the store has it now: its token may have been renewed while the password
 * of the next one was checked. As it was, where the store does not tell.
 */
export async function rereadFormer(request: FastifyRequest): Promise<Live | undefined> {
  const former = request.live
  if (former === undefined) return undefined
  const current = await request.server.gateway.sessions.reread(former).catch(() => undefined)
  return current !== undefined && 'live' in current ? current.live : former
}

/** Ends a session whose client left while it was opened: nobody has its cookie. */
export async function endUnread(request: FastifyRequest, opened: Live): Promise<void> {
  try {
    await abandonSession(request, opened)
  } finally {
    signOutAtSource(request.server.gateway, opened.session, request)
  }
}

/** Without a session of ours, nobody would ever end that of the back-end. */
export function endUnopened(request: FastifyRequest, user: VouchedUser): void {
  const { gateway } = request.server
  signOutAtSource(gateway, sessionBefore(user, gateway.sessions.now()), request)
}
