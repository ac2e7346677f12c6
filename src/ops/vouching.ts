/**
 * Who vouches for an operator: a source of `ops.sources`, or the operators' secret. Guesses at the
 * console lock no operator out of the page, and the reverse.
 */
import type { FastifyRequest } from 'fastify'
import type { Gateway } from '../app/gateway.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { createSignInGuard } from '../app/sign-in/guard.ts'
import { mustVouch } from '../app/sign-in/vouching.ts'
import { operatorSources } from '../config/schema/gateway.ts'
import { GatewayError } from '../errors/errors.ts'
import { operatorsApart } from '../limits/lockouts.ts'
import { signOutAtSource, takesPasswords } from '../login/credential-source.ts'
import { OidcSource } from '../login/oidc/source.ts'
import type { Entrant } from './session.ts'

export type Vouching = ReturnType<typeof createVouching>

export function createVouching(gateway: Gateway) {
  const { sessions, config, sourceFaults } = gateway
  const names = operatorSources(config.gateway)
  const ofOperators = gateway.sources.filter(({ name }) => names.includes(name))
  const sources = ofOperators.filter(takesPasswords)
  const guard = createSignInGuard(gateway, operatorsApart)
  return {
    takesPasswords: sources.length > 0,
    providers: ofOperators.filter(each => each instanceof OidcSource),
    /** @throws GatewayError for a wrong password, a lockout, or a user who is no operator */
    user: async (
      request: FastifyRequest,
      { username, password }: Readonly<Record<'username' | 'password', string>>,
      isOperator: (entrant: Entrant) => Promise<boolean>,
      leaving: AbortSignal
    ): Promise<Entrant> => {
      const attempt = await guard(request, username, leaving)
      const address = clientAddress(request)
      const signingIn = { username, password, extra: {}, address, requestId: request.id }
      const session = await mustVouch(sources, signingIn, attempt, {
        log: request.log,
        sourceFaults
      })
      // The gateway alone needs to know the user: a session of the back-end is not kept.
      signOutAtSource({ sources, sessions }, session, request)
      const { identity, password: digest, source } = session
      const entrant = { name: identity.username, user: { identity, source, password: digest } }
      if (!(await isOperator(entrant))) {
        // Counted: else whoever has a console account could have passwords checked without end.
        attempt.refused()
        throw new GatewayError('ops.role')
      }
      await attempt.refund()
      leaving.throwIfAborted()
      return entrant
    },
    secret: async (request: FastifyRequest, isRight: boolean, leaving: AbortSignal) => {
      const attempt = await guard(request, 'the operators’ secret', leaving)
      if (isRight) return await attempt.refund()
      attempt.refused()
      throw new GatewayError('login.refused', { message: 'The secret is wrong.' })
    }
  }
}
