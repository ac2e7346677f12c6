/** Opens the session of a sign-in. Where none is opened, that of the back-end ends as well. */
import type { FastifyRequest } from 'fastify'
import { signOutAtSource } from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live, Session } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { abandonSession, openSession } from '../hooks/session.ts'
import type { VouchedUser } from './vouching.ts'

/** The session that a sign-in would open, for checks before it is opened. */
export function sessionBefore({ source, result }: VouchedUser, now: number): Session {
  const { vouched: _, ...user } = result
  return {
    ...user,
    source,
    id: '',
    remembered: false,
    createdAt: now,
    idleMs: 0,
    address: '',
    agent: ''
  }
}

/**
 * Opens the session of a user whom a source vouches for, in the place of the browser's former one.
 * @param leaving aborted when the client leaves: nobody would get the session
 * @throws StoreUnavailable; GatewayError `login.too-many`, `login.blocked-by-operator`, and
 *   `upstream.invalid` for a secret of the session's credential in the answer, such as a token in a
 *   member of the profile; the reason of `leaving`
 */
export async function openFor(
  request: FastifyRequest,
  user: VouchedUser,
  remembered: boolean,
  leaving: AbortSignal
): Promise<Live> {
  const { gateway } = request.server
  const { sessions, cookie, answers } = gateway
  if (cookie.options.secure && request.protocol !== 'https') warnOnce(sessions, request)
  const now = sessions.now()
  const session = sessionBefore(user, now)
  let opened: Live | undefined
  try {
    leaving.throwIfAborted()
    const times = { idleEnd: now, absoluteEnd: now, now, aheadMs: 0 }
    const value = answers.login?.render({ session, ...times })
    refuseLeak(value, session.credential, 'endpoints.login.answer')
    const former = await rereadFormer(request)
    const address = clientAddress(request)
    const agent = (request.headers['user-agent'] ?? '').slice(0, 256)
    opened = await openSession(request, { ...session, remembered, address, agent })
    if (former !== undefined) signOutAtSource(gateway, former.session, request)
    if (leaving.aborted) await abandonSession(request, opened)
    leaving.throwIfAborted()
    return opened
  } catch (error) {
    // Nobody else would ever end it.
    signOutAtSource(gateway, opened?.session ?? session, request)
    throw error
  }
}

/**
 * The browser's session as the store has it now: its token may have been renewed while the password
 * of the next one was checked. As it was, where the store does not tell.
 */
async function rereadFormer(request: FastifyRequest): Promise<Live | undefined> {
  const former = request.live
  if (former === undefined) return undefined
  const current = await request.server.gateway.sessions.read(former.key).catch(() => undefined)
  return current !== undefined && 'live' in current ? current.live : former
}

/** Keyed by the sessions of this process, which outlive reloads: one line is enough. */
const warned = new WeakSet<Sessions>()

function warnOnce(sessions: Sessions, { log }: FastifyRequest): void {
  if (warned.has(sessions)) return
  warned.add(sessions)
  log.warn(
    { event: 'login.insecure' },
    'a sign-in seems to have come over plain http: a browser then drops the secure session cookie ' +
      'and shows the sign-in page again. Serve the console by https, and name the proxy that ends ' +
      'TLS in server.trustedProxies; it has to send X-Forwarded-Proto'
  )
}
