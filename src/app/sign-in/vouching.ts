/** Asks the sources, in their order, who vouches, and opens the session or records the refusal. */
import type { FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import {
  type ConsoleRequest,
  type PasswordSource,
  type Refusal,
  type SignInAttempt,
  signOutAtSource,
  type SourceFaults
} from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { keepCookies } from '../../session/cookie-header.ts'
import type { Live, Opened, Session } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { openSession } from '../hooks/session.ts'
import type { AttemptHandle } from './guard.ts'

/** Members of a session that are set when it is opened. */
export const unopened = { id: '', remembered: false, createdAt: 0, idleMs: 0, agent: '' }

/**
 * The first refusal that tells more than a wrong password counts, else the first: a wrong captcha
 * at one source does not end the search. @throws the refusal, or the failure of a source
 */
export async function mustVouch(
  sources: readonly PasswordSource[],
  signIn: SignInAttempt,
  attempt: AttemptHandle,
  { log, sourceFaults }: Pick<FastifyRequest, 'log'> & { readonly sourceFaults: SourceFaults }
): Promise<Session> {
  const refusals: Array<Refusal & { readonly source: string }> = []
  let failure: unknown
  for (const source of sources) {
    try {
      const result = await sourceFaults.watch(source.name, source.verify(signIn))
      if (result.vouched) {
        const { vouched: _, ...user } = result
        return { ...unopened, ...user, source: source.name, address: signIn.address }
      }
      refusals.push({ ...result, source: source.name })
      if (result.isFinal === true) break
    } catch (error) {
      failure ??= error
    }
  }
  const telling = refusals.find(({ kind }) => kind !== undefined)
  const wasGuess = refusals.some(({ kind, isUnknown }) => kind !== 'challenge' && !isUnknown)
  if (telling === undefined && failure !== undefined) {
    // An unreachable source must not count as a failed sign-in. But if another one refused the
    // password, its users could be guessed at meanwhile: the address counts at once, the account
    // after a bound. A request that made the source fail counts as refused.
    if (wasGuess) await attempt.undecided(toGatewayError(failure).status < 500)
    else await attempt.refund()
    throw failure
  }
  const refusal = telling ?? refusals[0]
  if (signIn.trail !== undefined) signIn.trail.source = refusal?.source
  const { username: user, address } = signIn
  const { kind, message } = refusal ?? {}
  // Where another source refused the password, the challenge counts as refused at once.
  if (kind === 'challenge' && !(await attempt.undecided(wasGuess))) {
    const text = 'sign-in refused before the password was checked'
    log.info({ event: 'login.challenge', user, address }, text)
  } else {
    if (kind !== 'challenge') attempt.refused()
    const outcome = kind !== undefined && { outcome: kind }
    log.info({ event: 'login.refused', user, address, ...outcome }, 'sign-in refused')
  }
  throw new GatewayError(`login.${kind ?? 'refused'}`, message === undefined ? {} : { message })
}

export function consoleRequest({ headers, server }: FastifyRequest): ConsoleRequest {
  const { cookie = '' } = headers
  return {
    headers,
    cookie: (upstream, name) => {
      const { sealedCookies } = server.gateway
      if (!sealedCookies.isSealed(upstream, name)) return keepCookies(cookie, [name])
      return sealedCookies.open(upstream, cookie, [name]).join('')
    }
  }
}

const insecure =
  'a sign-in seems to have come over plain http, where browsers drop its cookie: serve https, and ' +
  'name the proxy that ends TLS in server.trustedProxies; it has to send X-Forwarded-Proto'

/**
 * In the place of the browser's former session. Where none is opened, the back-end's ends as well.
 * @param leaving aborted when the client leaves: nobody would get the session
 * @throws StoreUnavailable; GatewayError `login.*`, `upstream.invalid` for a secret in the answer
 */
export async function open(request: FastifyRequest, session: Session, leaving: AbortSignal) {
  const { gateway } = request.server
  const { sessions, cookie, answers, warnOnce } = gateway
  if (cookie.options.secure && request.protocol !== 'https') {
    warnOnce('insecure', { event: 'login.insecure' }, insecure)
  }
  let opened: Opened | undefined
  try {
    leaving.throwIfAborted()
    const facts = { session, idleEnd: 0, absoluteEnd: 0 }
    refuseLeak(answers.login?.render(facts), session, 'endpoints.login.answer')
    const agent = (request.headers['user-agent'] ?? '').slice(0, 256)
    opened = await openSession(request, { ...session, agent })
    signOutAtSource(gateway, opened.replaced, request)
    if (!leaving.aborted) return opened
    request.session = null as never
    await sessions.end(opened, 'revoked')
    throw leaving.reason
  } catch (error) {
    // Nobody else would ever end it.
    signOutAtSource(gateway, opened?.session ?? session, request)
    throw error
  }
}

export function recordSignedIn(request: FastifyRequest, opened: Live): void {
  const { id: session, identity, source, address } = opened.session
  const { id: userId, username: user, roles } = identity
  request.server.gateway.counters.onSignIn(source, 'accepted')
  request.log.info({ event: 'login', user, userId, roles, source, session, address }, 'signed in')
}

const decided = /^login\.(refused|challenge|blocked|expired-password)/

/** @throws `error` */
export function refuse(request: FastifyRequest, error: unknown): never {
  const { trail } = request
  const { code, status } = toGatewayError(error)
  const [, outcome] = decided.exec(code) ?? []
  const other = status >= 500 || status === 409 ? 'failed' : 'malformed'
  const counted = outcome ?? (status === 429 ? 'limited' : other)
  request.server.gateway.counters.onSignIn(trail.source ?? '', counted)
  // It signed nobody in.
  trail.source = undefined
  if (code === 'login.blocked-by-operator') {
    const subject = { user: trail.user, address: clientAddress(request) }
    const fields = { event: 'login.refused', ...subject, outcome, code }
    request.log.info(fields, 'sign-in refused: an operator has blocked the user')
  }
  throw error
}
