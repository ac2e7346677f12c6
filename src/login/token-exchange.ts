/** A token that a back-end gives the gateway for a user whom another source has signed in. */
import type { ExchangeConfig } from '../config/schema/upstreams.ts'
import type { OutcomeTest } from '../config/schema/response-tests.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
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
  const { logout } = config
  return {
    upstream,
    renew: async (session, trail) => ({ credential: await requestToken(options, session, trail) }),
    ...(logout !== undefined && {
      signOut: async (session, trail) => {
        const credential = credentialIn(session, upstream)
        if (credential !== undefined) await signOut(options, logout, credential, trail)
      }
    })
  }
}

/** @throws GatewayError `route.unknown-user` for a refused user; `upstream.*` if it cannot tell */
async function requestToken(options: Options, session: Session, trail: Trail | undefined) {
  const { path, format, headers } = options.config
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
  const outcomes = withUsualOutcomes(options.config.outcomes, usualOutcomes)
  const response = new LoginResponse({ ...options.config, outcomes }, raw)
  const outcome = response.outcome()
  if (outcome === 'success') return response.credential({})
  const reason = `the exchange for a token was answered with status ${raw.status}`
  if (outcome === undefined) throw invalid(reason)
  throw new GatewayError('route.unknown-user', { cause: new Error(reason) })
}
