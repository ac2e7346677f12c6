/**
 * Asks the credential sources, in their order, who vouches for a password. An attempt for which
 * none does is counted.
 */
import type { FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import type {
  ConsoleRequest,
  PasswordSource,
  Refusal,
  SignInAttempt,
  SourceFaults
} from '../../login/credential-source.ts'
import { keepCookies } from '../../proxy/cookie-header.ts'
import type { Session } from '../../session/types.ts'
import type { AttemptHandle } from './guard.ts'

/** Members of a session that are set when it is opened. */
export const unopened = { id: '', remembered: false, createdAt: 0, idleMs: 0, agent: '' }

interface Asking extends Pick<FastifyRequest, 'log'> {
  readonly sourceFaults: SourceFaults
}

/**
 * The session that may be opened for the user for whom a source vouches. The refusal of all of them
 * is the first that tells more than a wrong password, else the first: a wrong captcha at one source
 * does not end the search.
 * @throws the refusal, or the failure of a source
 */
export async function mustVouch(
  sources: readonly PasswordSource[],
  signIn: SignInAttempt,
  attempt: AttemptHandle,
  { log, sourceFaults }: Asking
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
    // password, its users could be guessed at without end meanwhile: the address counts at once, the
    // account after a bound. A request that made the source fail counts as refused.
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
    if (kind !== 'challenge') await attempt.refused()
    const outcome = kind !== undefined && { outcome: kind }
    log.info({ event: 'login.refused', user, address, ...outcome }, 'sign-in refused')
  }
  throw new GatewayError(`login.${kind ?? 'refused'}`, message === undefined ? {} : { message })
}

/** The parts of the console's request that sources may pass on. */
export function consoleRequest({ headers, server }: FastifyRequest): ConsoleRequest {
  const { cookie = '' } = headers
  return {
    headers,
    cookie: (upstream, name) => {
      const sealed = server.gateway.sealedCookies.get(upstream)
      if (sealed?.names.has(name) !== true) return keepCookies(cookie, [name])
      return sealed.open(cookie, [name]).join('')
    }
  }
}
