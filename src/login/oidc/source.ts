/** Credential source: an OpenID provider, at which users sign in (OpenID Connect Core 1.0 §3.1). */
import { decodeJwt } from 'jose'
import * as client from 'openid-client'
import type { OidcConfig } from '../../config/schema/oidc.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Credential, Identity, Session } from '../../session/types.ts'
import type { CredentialSource, Renewed } from '../credential-source.ts'
import { headerSafe } from '../login-response.ts'
import { type Claims, identityOf } from './claims.ts'
import { type Provider, throwProviderError, toProviderError } from './provider.ts'

/** A sign-in that is under way, kept sealed in the browser. */
export interface Flow {
  /** The name of the source: at another provider it is worth nothing (RFC 9700 §4.4). */
  readonly source: string
  readonly state: string
  readonly nonce: string
  /** Of PKCE (RFC 7636). */
  readonly verifier: string
  readonly redirectUri: string
  /** Where the browser goes in the end: a path of the console. */
  readonly landing: string
}

interface Vouched {
  readonly identity: Identity
  readonly credential: Credential
}

interface Options {
  readonly name: string
  readonly config: OidcConfig
  readonly provider: Provider
}

/** A source whose users sign in at another site. */
export interface OidcSource extends CredentialSource {
  readonly config: OidcConfig
  readonly provider: Provider
  /**
   * Begins a sign-in.
   * @param asksAgain whether the provider shall ask for the password also where it knows the user
   * @returns the flow, and where the browser goes
   * @throws GatewayError `upstream.*`
   */
  begin(redirectUri: string, landing: string, asksAgain: boolean): Promise<[Flow, string]>
  /**
   * Exchanges the code of the provider's response.
   * @param query of the address to which the browser came back
   * @throws GatewayError `login.blocked`, `login.refused`, `upstream.*`
   */
  complete(flow: Flow, query: string): Promise<Vouched>
}

export function isOidcSource(source: CredentialSource | undefined): source is OidcSource {
  return source !== undefined && 'begin' in source
}

type Tokens = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers

export function createOidcSource(options: Options): OidcSource {
  const { name, config, provider } = options
  return {
    name,
    config,
    provider,
    begin: async (redirectUri, landing, asksAgain) => {
      const flow: Flow = {
        source: name,
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        redirectUri,
        landing
      }
      const url = client.buildAuthorizationUrl(await provider.configuration(), {
        ...config.parameters,
        response_type: 'code',
        // A form that another site posts would come without the flow's cookie.
        response_mode: 'query',
        redirect_uri: redirectUri,
        scope: [...new Set(['openid', ...config.scopes])].join(' '),
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(flow.verifier),
        code_challenge_method: 'S256',
        ...(asksAgain && { prompt: 'login' })
      })
      return [flow, url.href]
    },
    complete: async ({ redirectUri, ...flow }, query) => {
      const tokens = await client
        .authorizationCodeGrant(
          await provider.configuration(),
          new URL(`${redirectUri}?${query}`),
          {
            expectedState: flow.state,
            expectedNonce: flow.nonce,
            pkceCodeVerifier: flow.verifier,
            idTokenExpected: true
          }
        )
        .catch(throwRefusal)
      const claims = await provider.verify(tokens.id_token ?? '')
      const more = await userInfo(options, tokens, claims)
      return {
        identity: identityOf({ ...claims, ...more }, config),
        credential: credentialOf(tokens, {})
      }
    },
    renew: async session => await renew(options, session),
    signOut: async ({ credential }) => {
      const configuration = await provider.configuration()
      const { revocation_endpoint: endpoint } = configuration.serverMetadata()
      if (endpoint === undefined || credential?.refreshToken === undefined) return
      await client
        .tokenRevocation(configuration, credential.refreshToken, {
          token_type_hint: 'refresh_token'
        })
        .catch(throwProviderError)
    }
  }
}

/**
 * The claims of the UserInfo endpoint, which are about the same user.
 * @throws GatewayError `upstream.*`
 */
async function userInfo(
  { config, provider }: Options,
  { access_token: token }: Tokens,
  { sub = '' }: Claims & { readonly sub?: string }
): Promise<Claims> {
  const configuration = await provider.configuration()
  if (!config.userInfo || configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  return await client.fetchUserInfo(configuration, token, sub).catch(throwProviderError)
}

/** @returns undefined where the user may be signed in no longer, or the provider gives another */
async function renew(options: Options, session: Session): Promise<Renewed | undefined> {
  const { provider } = options
  const { refreshToken, idToken } = session.credential ?? {}
  if (refreshToken === undefined || idToken === undefined) return undefined
  const configuration = await provider.configuration()
  // They are needed after the exchange, and a refresh token may be good only once.
  await provider.readKeys()
  let tokens: Tokens
  try {
    tokens = await client.refreshTokenGrant(configuration, refreshToken)
  } catch (error) {
    if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return
    throw toProviderError(error)
  }
  try {
    return await renewedBy(options, tokens, session, decodeJwt(idToken))
  } catch (error) {
    if (error instanceof GatewayError && error.status < 503) return undefined
    throw error
  }
}

/**
 * A provider need not send an ID token then, and its UserInfo may be away: what is not told stays.
 * openid-client compares neither issuer nor subject (OpenID Connect Core 1.0 §12.2).
 */
async function renewedBy(
  options: Options,
  tokens: Tokens,
  { credential = {}, identity: former }: Session,
  old: Claims
): Promise<Renewed | undefined> {
  const { id_token: idToken } = tokens
  const claims = idToken === undefined ? old : await options.provider.verify(idToken)
  if (claims['iss'] !== old['iss'] || claims['sub'] !== old['sub']) return undefined
  const renewed = { credential: credentialOf(tokens, credential) }
  const more = await userInfo(options, tokens, claims).catch((error: GatewayError) => {
    if (error.status < 503) throw error
  })
  if (more === undefined) return renewed
  const identity = identityOf({ ...claims, ...more }, options.config)
  return identity.id === former.id ? { ...renewed, identity } : undefined
}

/** Without a refresh token nothing is renewed, so the session does not end with its token. */
function credentialOf(tokens: Tokens, former: Credential): Credential {
  const seconds = tokens.expiresIn()
  const { refresh_token: refreshToken = former.refreshToken, id_token: idToken = former.idToken } =
    tokens
  const sid = tokens.claims()?.['sid'] ?? former.sid
  return {
    token: headerSafe(tokens.access_token),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(refreshToken !== undefined &&
      seconds !== undefined && { expiresAt: Date.now() + seconds * 1000 }),
    ...(idToken !== undefined && { idToken }),
    ...(typeof sid === 'string' && { sid })
  }
}

const notCompleted = 'The sign-in was not completed. Please try again.'

/** @throws GatewayError `login.refused` where the user, or the provider, did not want it */
function throwRefusal(error: unknown): never {
  const isRefusal =
    error instanceof client.AuthorizationResponseError ||
    (error instanceof client.ResponseBodyError && error.error === 'invalid_grant')
  if (!isRefusal || /^(?:server_error|temporarily_unavailable)$/.test(error.error)) {
    throw toProviderError(error)
  }
  throw new GatewayError('login.refused', {
    message: notCompleted,
    cause: toProviderError(error).cause
  })
}
