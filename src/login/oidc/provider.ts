/** An OpenID provider: what it publishes, its keys, and calls that are bounded in time and size. */
import type { createRemoteJWKSet, JWTPayload, JWTVerifyOptions } from 'jose'
import type * as client from 'openid-client'
import { BoundedMap } from '../../bounded-map.ts'
import { isLoopback } from '../../config/schema/host-port.ts'
import type { OidcConfig } from '../../config/schema/login.ts'
import { GatewayError } from '../../errors/errors.ts'
import { isRecord, type JsonRecord } from '../../json/values.ts'

/** The libraries take 45 ms to read: only the first call that needs them does. */
export const openIdClient = async () => await import('openid-client')
const jose = async () => await import('jose')

type KeySet = ReturnType<typeof createRemoteJWKSet>
export type ProviderConfig = Pick<OidcConfig, 'issuer' | 'clientId' | 'clientSecret'>

const callMs = 10_000
/** What signs for many readers: whoever knows a key of HMAC could sign as well. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
]
const maxResponseBytes = 256 * 1024
/** An unknown key makes all be read again, at most once in this time. */
const rereadMs = 60_000
/** How far the provider's clock may be off. */
export const clockTolerance = 120

const providers = new BoundedMap<Provider>(100)

/** It outlives reloads, so that nothing is read again for one. */
export function providerOf(config: ProviderConfig): Provider {
  const { issuer, clientId, clientSecret } = config
  const name = JSON.stringify([issuer, clientId, clientSecret])
  const provider = providers.get(name) ?? new Provider(config)
  providers.set(name, provider)
  return provider
}

/** Asks nothing before it is needed: the gateway starts without its provider. */
export class Provider {
  readonly #config: ProviderConfig
  #configuration: Promise<client.Configuration> | undefined
  #keySet: KeySet | undefined

  constructor(config: ProviderConfig) {
    this.#config = config
  }

  /** @throws GatewayError `upstream.*` */
  async configuration(): Promise<client.Configuration> {
    this.#configuration ??= discover(this.#config)
    try {
      return await this.#configuration
    } catch (error) {
      this.#configuration = undefined
      throw error
    }
  }

  async #keys(): Promise<KeySet> {
    const { jwks_uri: from = '' } = (await this.configuration()).serverMetadata()
    return (this.#keySet ??= await keysAt(from))
  }

  async readKeys(): Promise<void> {
    const keys = await this.#keys()
    if (!keys.fresh) await keys.reload().catch(throwProviderError)
  }

  /** @throws GatewayError `upstream.*` for what it did not sign for this client, too */
  async verify(token: string, more: JWTVerifyOptions = {}): Promise<JWTPayload> {
    const keys = await this.#keys()
    const { issuer } = (await this.configuration()).serverMetadata()
    const audience = this.#config.clientId
    const checks = { issuer, audience, algorithms, clockTolerance, ...more }
    const { jwtVerify } = await jose()
    const { payload } = await jwtVerify(token, keys, checks).catch(throwProviderError)
    return payload
  }
}

async function discover({ issuer, clientId, clientSecret }: ProviderConfig) {
  const url = new URL(issuer)
  const library = await openIdClient()
  const metadata = { [library.clockTolerance]: clockTolerance }
  return await library
    .discovery(url, clientId, metadata, authentication(library, clientSecret), {
      [library.customFetch]: boundedFetch,
      timeout: callMs / 1000,
      // `boundedFetch` refuses it to other machines.
      ...(url.protocol === 'http:' && { execute: [library.allowInsecureRequests] })
    })
    .then(mustBeUsable)
    .catch(throwProviderError)
}

function mustBeUsable(found: client.Configuration): client.Configuration {
  const { end_session_endpoint: end, ...settings } = found.serverMetadata()
  for (const each of [settings.authorization_endpoint, settings.jwks_uri, end ?? settings.issuer]) {
    if (!isSafe(each)) throw new Error(`its settings name ${each}, which is no https address`)
  }
  return found
}

function isSafe(address: string | undefined): boolean {
  const { protocol, hostname } = URL.parse(address ?? '') ?? {}
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname ?? ''))
}

async function keysAt(address: string): Promise<KeySet> {
  const { createRemoteJWKSet, customFetch } = await jose()
  return createRemoteJWKSet(new URL(address), {
    [customFetch]: boundedFetch,
    timeoutDuration: callMs,
    cooldownDuration: rereadMs
  })
}

/** By POST where the provider takes that, else by HTTP Basic (OpenID Connect Core 1.0 §9). */
function authentication(library: typeof client, secret: string | undefined): client.ClientAuth {
  if (secret === undefined) return library.None()
  const [byPost, byBasic] = [library.ClientSecretPost(secret), library.ClientSecretBasic(secret)]
  return (server, ...others) => {
    const methods = server.token_endpoint_auth_methods_supported ?? []
    return (methods.includes('client_secret_post') ? byPost : byBasic)(server, ...others)
  }
}

/** Without redirects, to https or this machine. The signal of `options` bounds its time. */
async function boundedFetch(address: string, options: object): Promise<Response> {
  if (!isSafe(address)) throw new Error(`${address} is not https`)
  const response = await fetch(address, { ...options, redirect: 'manual' })
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxResponseBytes) throw new Error(`the response of ${address} is too large`)
    chunks.push(chunk)
  }
  const { status, headers } = response
  return new Response(chunks.length === 0 ? null : Buffer.concat(chunks), { status, headers })
}

/** The header (0) or claims (1) of a token, unverified. @throws SyntaxError for what is none */
export function partOf(token: string, index: 0 | 1): JsonRecord {
  const text = Buffer.from(token.split('.', 2)[index] ?? '', 'base64url').toString()
  const part: unknown = JSON.parse(text)
  return isRecord(part) ? part : {}
}

const notCompleted = 'The sign-in was not completed. Please try again.'

type Failure = Error & Record<'code' | 'error' | 'error_description', string> & { status: number }

/** Codes of the libraries, and of OAuth, of a provider that is away, or shows a page about that. */
const awayCodes = new Set<string | undefined>([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
  'ERR_JWKS_TIMEOUT',
  'ERR_JOSE_GENERIC',
  'server_error',
  'temporarily_unavailable'
])

/** A provider that cannot answer is 503: that is no refusal. The reason has no token in it. */
export function toProviderError(failure: unknown): GatewayError {
  if (failure instanceof GatewayError) return failure
  const { message, code, status = 0, error, cause, ...others } = failure as Partial<Failure>
  const clock = code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' && 'is its clock, or ours, wrong?'
  const inner = cause instanceof Error && `(${cause.message})`
  const said = [message, code, error, others.error_description, inner, clock].filter(Boolean)
  const reason = new Error(`the OpenID provider: ${said.join(' ').slice(0, 300)}`)
  // `fetch` throws a TypeError. That of what is no token is its cause.
  const isUnreachable =
    code !== 'ERR_JWS_INVALID' && [failure, cause].some(each => each instanceof TypeError)
  if (isUnreachable || status >= 500 || awayCodes.has(code) || awayCodes.has(error)) {
    return new GatewayError('upstream.refused', { status: 503, cause: reason })
  }
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' || error === 'invalid_grant') {
    return new GatewayError('login.refused', { message: notCompleted, cause: reason })
  }
  return new GatewayError('upstream.invalid', { cause: reason })
}

export function throwProviderError(failure: unknown): never {
  throw toProviderError(failure)
}
