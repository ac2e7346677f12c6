/**
 * Checks the passwords of operators who sign in to their page: by the sources of `ops.sources`, by
 * the same steps as the console's sign-in, with failures counted apart from it. So guesses at the
 * console lock no operator out of the page, and guesses at the page lock nobody out of the console.
 */
import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/schema/config.ts'
import { operatorSources } from '../config/schema/operators.ts'
import { GatewayError } from '../errors.ts'
import { type CredentialSource, signOutAtSource } from '../login/credential-source.ts'
import type { Sessions } from '../session/session.ts'
import { clientAddress } from './hooks/address.ts'
import { createSignInGuard, type SignInGuard } from './hooks/sign-in-guard.ts'
import { type VouchedUser, sessionBefore } from './endpoints/login-answer.ts'
import { countRefusal, countUndecided, refusalError } from './endpoints/refused-sign-in.ts'
import { firstVouching } from './endpoints/vouching.ts'
import { createAppMetrics } from './app-metrics.ts'
import { createSources } from './credential-sources.ts'
import type { GenerationServices } from './generation-services.ts'

export interface OperatorCredentials {
  readonly username: string
  readonly password: string
}

export interface OperatorSignIn {
  /**
   * @param leaving aborted when the client leaves
   * @throws GatewayError for a wrong password, a lockout, or an account without `ops.role`
   */
  readonly vouch: (
    request: FastifyRequest,
    credentials: OperatorCredentials,
    leaving: AbortSignal
  ) => Promise<VouchedUser>
}

interface Parts {
  readonly role: string
  readonly sources: readonly CredentialSource[]
  readonly guard: SignInGuard
  readonly sessions: Sessions
}

/** @returns undefined without `ops.role`: then nobody signs in to the page */
export function createOperatorSignIn(
  config: Config,
  services: GenerationServices
): OperatorSignIn | undefined {
  const { role } = config.gateway.ops
  if (role === undefined) return undefined
  const names = operatorSources(config.gateway)
  // Before there is an app: it may throw.
  const sources = createSources(config, services).filter(({ name }) => names.includes(name))
  const { onRefused, onLocked } = createAppMetrics(services.metrics, services.rates)
  const guard = createSignInGuard({
    config: config.limits,
    lockouts: services.lockouts,
    knownBrowsers: undefined,
    isOfOperators: true,
    onRefused,
    onLocked
  })
  return {
    vouch: (...signIn) => vouch({ role, sources, guard, sessions: services.sessions }, ...signIn)
  }
}

async function vouch(
  { role, sources, guard, sessions }: Parts,
  request: FastifyRequest,
  { username, password }: OperatorCredentials,
  leaving: AbortSignal
): Promise<VouchedUser> {
  const attempt = await guard.attempt(request, username, leaving)
  const verdict = await firstVouching(sources, {
    username,
    password,
    extra: {},
    address: clientAddress(request),
    requestId: request.id
  })
  if ('failure' in verdict) {
    await countUndecided(attempt, verdict)
    throw verdict.failure
  }
  if ('vouched' in verdict) {
    await countRefusal(attempt, verdict, request, username)
    throw refusalError(verdict)
  }
  // The gateway alone needs to know the user: a session of the back-end is not kept.
  signOutAtSource({ sources, sessions }, sessionBefore(verdict, Date.now()), { log: request.log })
  if (!verdict.result.identity.roles.includes(role)) {
    // Counted: else whoever has a console account could have passwords checked without end.
    await attempt.refused()
    throw new GatewayError('ops.role')
  }
  await attempt.refund()
  leaving.throwIfAborted()
  return verdict
}
