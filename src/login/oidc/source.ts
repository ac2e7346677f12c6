/** Credential source: an OpenID provider, at which users sign in (OpenID Connect Core 1.0 §3.1). */
import type { JWTPayload } from 'jose'
import type * as client from 'openid-client'
import { type OidcConfig, oidcPath } from '../../config/schema/login.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Credential, Renewed, Session } from '../../session/types.ts'
import type { CredentialSource } from '../credential-source.ts'
import { headerSafe } from '../login-response.ts'
import { identityOf } from './claims.ts'
import { providerSession } from './logout-token.ts'
import {
  openIdClient,
  partOf,
  type Provider,
  throwProviderError,
  toProviderError
} from './provider.ts'

export interface Flow {
  /** The name of the source: at another provider it is worth nothing (RFC 9700 §4.4). */
  readonly source: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
  /** Where the browser goes in the end: a path of the console. */
  readonly landing: string
}

type Tokens = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers

export class OidcSource implements CredentialSource {
  readonly name: string
  readonly config: OidcConfig
  readonly provider: Provider
  /** Of its sign-in; its other addresses are below it. */
  readonly path: string

  constructor(name: string, config: OidcConfig, provider: Provider) {
    this.name = name
    this.config = config
    this.provider = provider
    this.path = oidcPath(name, config)
  }

  /** @param asksAgain for the password, also where the provider knows the user */
  async begin(redirectUri: string, landing: string, asksAgain: boolean): Promise<[Flow, string]> {
    const library = await openIdClient()
    const [state, nonce] = [library.randomState(), library.randomNonce()]
    const verifier = library.randomPKCECodeVerifier()
    const url = library.buildAuthorizationUrl(await this.provider.configuration(), {
      response_type: 'code',
      // A form that another site posts would come without the flow's cookie.
      response_mode: 'query',
      redirect_uri: redirectUri,
      scope: [...new Set(['openid', ...this.config.scopes])].join(' '),
      state,
      nonce,
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(asksAgain && { prompt: 'login' })
    })
    return [{ source: this.name, state, nonce, verifier, redirectUri, landing }, url.href]
  }

  /** @throws GatewayError `login.blocked`, `login.refused`, `upstream.*` */
  async complete(flow: Flow, query: string) {
    const url = new URL(`${flow.redirectUri}?${query}`)
    const library = await openIdClient()
    const tokens = await library
      .authorizationCodeGrant(await this.provider.configuration(), url, {
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        pkceCodeVerifier: flow.verifier,
        idTokenExpected: true
      })
      .catch(throwProviderError)
    const claims = await this.provider.verify(tokens.id_token ?? '')
    const credential = credentialOf(tokens)
    const more = await this.#userInfo(tokens, claims)
    const identity = identityOf({ ...claims, ...more }, this.config)
    return { identity, credential, provider: providerSession(this.name, claims) }
  }

  async #userInfo({ access_token: token }: Tokens, { sub = '' }: JWTPayload) {
    const configuration = await this.provider.configuration()
    const { userinfo_endpoint: endpoint } = configuration.serverMetadata()
    if (!this.config.userInfo || endpoint === undefined) return {}
    const library = await openIdClient()
    return await library.fetchUserInfo(configuration, token, sub).catch(throwProviderError)
  }

  /** @returns undefined where the user may be signed in no longer, or another one is told */
  async renew(session: Session): Promise<Renewed | undefined> {
    const { refreshToken, idToken } = session.credential ?? {}
    if (refreshToken === undefined || idToken === undefined) return undefined
    const configuration = await this.provider.configuration()
    // They are needed after the exchange, and a refresh token may be good only once.
    await this.provider.readKeys()
    const library = await openIdClient()
    try {
      const tokens = await library.refreshTokenGrant(configuration, refreshToken)
      return await this.#renewed(tokens, session, partOf(idToken, 1))
    } catch (error) {
      const failure = toProviderError(error)
      const { code } = error as { readonly code?: string }
      const isOfOthers = code === 'OAUTH_JWT_CLAIM_COMPARISON_FAILED'
      // The refresh token is spent, and another issuer, or other clients' tokens, stay so.
      if (failure.code === 'login.refused' || isOfOthers) return undefined
      throw failure
    }
  }

  /** openid-client compares neither issuer nor subject (OpenID Connect Core 1.0 §12.2). */
  async #renewed(tokens: Tokens, former: Session, old: JWTPayload): Promise<Renewed | undefined> {
    const credential = credentialOf(tokens, former.credential)
    try {
      const { id_token: idToken } = tokens
      const claims = idToken === undefined ? old : await this.provider.verify(idToken)
      if (claims.iss !== old.iss || claims.sub !== old.sub) return undefined
      const more = await this.#userInfo(tokens, claims)
      const identity = identityOf({ ...claims, ...more }, this.config)
      return identity.id === former.identity.id ? { credential, identity } : undefined
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 503) return undefined
      // The new ID token may not have been verified.
      const { idToken } = former.credential ?? {}
      return { credential: { ...credential, ...(idToken && { idToken }) } }
    }
  }

  /** Its tokens are worth nothing any more (RFC 7009). @throws GatewayError `upstream.*` */
  async signOut({ credential: { refreshToken } = {} }: Session): Promise<void> {
    const configuration = await this.provider.configuration()
    const { revocation_endpoint: endpoint } = configuration.serverMetadata()
    if (endpoint === undefined || refreshToken === undefined) return
    const library = await openIdClient()
    await library.tokenRevocation(configuration, refreshToken).catch(throwProviderError)
  }
}

/** Without a refresh token it has no end: nothing is renewed, so the session outlives the token. */
function credentialOf(tokens: Tokens, former: Credential = {}): Credential {
  const { refresh_token: refreshToken = former.refreshToken } = tokens
  const { id_token: idToken = former.idToken } = tokens
  const seconds = tokens.expiresIn()
  return {
    token: headerSafe(tokens.access_token),
    ...(refreshToken !== undefined && {
      refreshToken,
      ...(seconds !== undefined && { expiresAt: Date.now() + seconds * 1000 })
    }),
    ...(idToken !== undefined && { idToken })
  }
}
