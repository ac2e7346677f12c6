/** The credential that an upstream gets of a session: that of its source, or a token of its own. */
import type { Config } from '../config/schema/config.ts'
import { credentialOf } from '../config/schema/routes.ts'
import type { TokenExchange } from '../login/credential-source.ts'
import { createMint } from '../login/minted-token.ts'
import { createTokenExchange } from '../login/token-exchange.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { credentialIn } from '../session/credentials.ts'
import { type Credential, identityKey, type Session } from '../session/types.ts'
import { fillUser } from '../shaping/answer.ts'

type CredentialFor = (session: Session) => Credential | undefined

export function createBackEndTokens(config: Config, upstreamOf: (name: string) => Upstream) {
  const exchanges = new Map<string, TokenExchange>()
  const mints = new Map<string, ReturnType<typeof createMint>>()
  for (const [upstream, written] of Object.entries(config.routes.upstreams)) {
    const { as, scheme, exchange, jwt } = credentialOf(written.credential)
    if (exchange !== undefined) {
      const options = {
        upstream,
        config: exchange,
        bodyOf: (session: Session) => fillUser(config, exchange.body, session) as object,
        send: upstreamOf(upstream).fetchWhole,
        credentialStyle: as,
        credentialScheme: scheme
      }
      exchanges.set(upstream, createTokenExchange(options))
    }
    if (jwt !== undefined) {
      const usual = { iss: 'console-gateway', aud: upstream }
      const mint = createMint(jwt, session => ({
        ...usual,
        ...claimsOf(config, jwt.claims, session)
      }))
      mints.set(upstream, mint)
    }
  }
  return {
    exchanges,
    credentialFor: (upstream: string): CredentialFor => {
      if (exchanges.has(upstream)) return session => credentialIn(session, upstream)
      return mints.get(upstream)?.tokenOf ?? (({ credential }) => credential)
    },
    publicKeys: [
      ...new Map(
        [...mints.values()].flatMap(mint => mint.publicKeys).map(key => [key.kid, key])
      ).values()
    ]
  }
}

function claimsOf(config: Config, claims: object, session: Session) {
  const { id, username, name, roles } = session.identity
  return {
    sub: config.gateway.identity.prefix ? identityKey(session) : id,
    preferred_username: username,
    name,
    roles,
    ...(fillUser(config, claims, session) as object)
  }
}
