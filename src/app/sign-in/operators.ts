/**
 * Checks the passwords of operators who sign in to their page: by the sources of `ops.sources`, by
 * the same steps as the console's sign-in, with failures counted apart from it. So guesses at the
 * console lock no operator out of the page, and guesses at the page lock nobody out of the console.
 */
import type { FastifyRequest } from 'fastify'
import { operatorSources } from '../../config/schema/operators.ts'
import { GatewayError } from '../../errors/errors.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import type { Gateway } from '../gateway.ts'
import { clientAddress } from '../hooks/address.ts'
import { sessionBefore } from './back-end-sessions.ts'
import { createSignInGuard, operatorsApart } from './guard.ts'
import { countRefusal, countUndecided, refusalError } from './refusals.ts'
import { firstVouching, type VouchedUser } from './vouching.ts'

/**
 * @param leaving aborted when the client leaves
 * @throws GatewayError for a wrong password, a lockout, or an account without `ops.role`
 */
export type VouchForOperator = (
  request: FastifyRequest,
  credentials: { readonly username: string; readonly password: string },
  leaving: AbortSignal
) => Promise<VouchedUser>

/** @returns undefined without `ops.role`: then nobody signs in to the page */
export function createOperatorSignIn(gateway: Gateway): VouchForOperator | undefined {
  const { config, sessions } = gateway
  const { role } = config.gateway.ops
  if (role === undefined) return undefined
  const names = operatorSources(config.gateway)
  const sources = gateway.sources.filter(({ name }) => names.includes(name))
  const guard = createSignInGuard(gateway, { apart: operatorsApart })
  return async (request, { username, password }, leaving) => {
    const attempt = await guard(request, username, leaving)
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
}
