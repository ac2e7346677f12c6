/** A token that a back-end gives the gateway for a user whom another source has signed in. */
import type { ExchangeConfig } from '../config/schema/upstreams.ts'
import type { OutcomeTest } from '../config/schema/response-tests.ts'
import { GatewayError } from '../errors/errors.ts'
import { credentialIn } from '../session/credentials.ts'
import type { Session } from '../session/types.ts'
import { ask, type BackEnd, withLowerNames } from './back-end-call.ts'
import type { TokenExchange } from './credential-source.ts'
import { invalid, LoginResponse } from './login-response.ts'
import { callMs, signOut, withUsualOutcomes } from './upstream-login.ts'

interface Options extends BackEnd {
  readonly upstream: string
  readonly config: ExchangeConfig
  readonly bodyOf: (session: Session) => object
}

/** Not 401: the back-end refuses the gateway then, and says nothing of the user. */
const usualOutcomes: readonly OutcomeTest[] = [
  { is: 'success', status: [200, 201] },
  { is: 'refused', status: [400, 403, 404, 422] }
]

export function createTokenExchange(options: Options): TokenExchange {
  const { upstream, config } = options
  const { path, format, headers, logout } = config
  const outcomes = withUsualOutcomes(config.outcomes, usualOutcomes)
  return {
    upstream,
    renew: async (session, trail) => {
      const raw = await ask(options, {
        method: 'POST',
        path,
        format,
        body: options.bodyOf(session),
        headers: withLowerNames(headers),
        timeoutMs: callMs,
        purpose: 'renewal',
        trail
      })
      const response = new LoginResponse({ ...config, outcomes }, raw)
      const outcome = response.outcome()
      if (outcome === 'success') return { credential: response.credential({}) }
      const reason = `the exchange for a token was answered with status ${raw.status}`
      if (outcome === undefined) throw invalid(reason)
      throw new GatewayError('route.unknown-user', { cause: new Error(reason) })
    },
    ...(logout !== undefined && {
      signOut: async (session, trail) => {
        const credential = credentialIn(session, upstream)
        if (credential !== undefined) await signOut(options, logout, credential, trail)
      }
    })
  }
}
