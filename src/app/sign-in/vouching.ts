/**
 * Asks the credential sources, in their order, who vouches for a password. An attempt for which
 * none does is counted.
 */
import type { FastifyRequest } from 'fastify'
import { type ErrorCode, GatewayError, toGatewayError } from '../../errors/errors.ts'
import type {
  ConsoleRequest,
  CredentialSource,
  Refusal,
  RefusalKind,
  SignInAttempt,
  SignInResult
} from '../../login/credential-source.ts'
import { keepCookies } from '../../proxy/cookie-header.ts'
import type { AttemptHandle } from './guard.ts'

/** A user, and the source that vouches for its password. */
export interface VouchedUser {
  readonly source: string
  readonly result: Extract<SignInResult, { readonly vouched: true }>
}

const codeOfRefusal = {
  'challenge': 'login.challenge',
  'blocked': 'login.blocked',
  'expired-password': 'login.expired-password'
} as const satisfies Record<RefusalKind, ErrorCode>

/**
 * The user for whom a source vouches. The refusal of all of them is the first that tells more than
 * a wrong password, else the first: a wrong captcha at one source does not end the search.
 * @throws the refusal, or the failure of a source
 */
export async function mustVouch(
  sources: readonly CredentialSource[],
  signIn: SignInAttempt,
  attempt: AttemptHandle,
  log: FastifyRequest['log']
): Promise<VouchedUser> {
  const refusals: Array<Refusal & { readonly source: string }> = []
  let failure: unknown
  for (const source of sources) {
    try {
      const result = await source.verify(signIn)
      if (result.vouched) return { source: source.name, result }
      refusals.push({ ...result, source: source.name })
      if (result.isFinal === true) break
    } catch (error) {
      failure ??= error
    }
  }
  const telling = refusals.find(({ kind }) => kind !== undefined)
  const wasGuess = refusals.some(({ kind, isUnknown }) => kind !== 'challenge' && !isUnknown)
  if (telling === undefined && failure !== undefined) {
    await countUndecided(attempt, failure, wasGuess)
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
  const code = kind === undefined ? 'login.refused' : codeOfRefusal[kind]
  throw new GatewayError(code, message === undefined ? {} : { message })
}

/**
 * An unreachable source must not count as a failed sign-in. But if another one refused the
 * password, its users could be guessed at without end meanwhile: the address counts at once, the
 * account after a bound. A request that made the source fail counts as refused.
 */
async function countUndecided(
  attempt: AttemptHandle,
  failure: unknown,
  wasGuess: boolean
): Promise<void> {
  if (!wasGuess) return await attempt.refund()
  const isOfClient = toGatewayError(failure).status < 500
  await attempt.undecided(isOfClient)
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
