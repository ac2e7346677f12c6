/** An OpenID provider: what it publishes, its keys, and calls that are bounded in time and size. */
import { hash } from 'node:crypto'
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyOptions
} from 'jose'
import * as client from 'openid-client'
import { BoundedMap } from '../../bounded-map.ts'
import { isLoopback } from '../../config/schema/host-port.ts'
import type { OidcConfig } from '../../config/schema/oidc.ts'
import { GatewayError } from '../../errors/errors.ts'
import { steadyNow } from '../../steady-clock.ts'

export type ProviderConfig = Pick<OidcConfig, 'issuer' | 'clientId' | 'clientSecret'>
export type Provider = ReturnType<typeof createProvider>

const callMs = 10_000
const maxResponseBytes = 256 * 1024
const rediscoverMs = 3_600_000
/** So long a failed discovery is not tried again. */
const failureMs = 2000
/** An unknown key id makes the keys be read again, at most once in this time. */
const rereadMs = 60_000
/** How far the provider's clock may be off. */
const clockToleranceSeconds = 120
/** No `none`, and no HMAC: whoever knows the client's secret could sign. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519'
]

type KeySet = ReturnType<typeof createRemoteJWKSet>

const providers = new BoundedMap<Provider>(100)

/** One for each config. It outlives reloads, so that no key is read again for one. */
export function providerOf({ issuer, clientId, clientSecret = '' }: ProviderConfig): Provider {
  const name = hash('sha256', JSON.stringify([issuer, clientId, clientSecret]))
  const provider = providers.get(name) ?? createProvider({ issuer, clientId, clientSecret })
  providers.set(name, provider)
  return provider
}

/**
 * A `fetch` without redirects, to https or this machine, whose response is at most 256 KiB.
 * @param options with a signal that bounds its time
 */
async function boundedFetch(address: string, options: object): Promise<Response> {
  const { protocol, hostname } = new URL(address)
  if (protocol !== 'https:' && !isLoopback(hostname)) throw new Error(`${address} is not https`)
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

/** Nothing is asked before it is needed: the gateway starts without its provider. */
function createProvider({ issuer, clientId, clientSecret }: Required<ProviderConfig>) {
  const url = new URL(issuer)
  let known: client.Configuration | undefined
  let running: Promise<client.Configuration> | undefined
  let failure: GatewayError | undefined
  let nextAt = 0
  let rereadAt = 0
  let keySet: { readonly address: string; readonly keys: KeySet } | undefined

  async function discover(): Promise<client.Configuration> {
    try {
      const metadata = { [client.clockTolerance]: clockToleranceSeconds }
      known = await client.discovery(url, clientId, metadata, authentication(clientSecret), {
        [client.customFetch]: boundedFetch,
        timeout: callMs / 1000,
        // The fetch above refuses it to other machines.
        ...(url.protocol === 'http:' && { execute: [client.allowInsecureRequests] })
      })
      nextAt = steadyNow() + rediscoverMs
      return known
    } catch (error) {
      nextAt = steadyNow() + failureMs
      failure = toProviderError(error)
      if (known === undefined) throw failure
      return known
    } finally {
      running = undefined
    }
  }

  /**
   * The client of openid-client. A provider that is away since has the one from before.
   * @throws GatewayError `upstream.*`
   */
  async function configuration(): Promise<client.Configuration> {
    if (steadyNow() >= nextAt) running ??= discover()
    if (known !== undefined) return known
    if (running === undefined) throw failure
    return await running
  }

  async function keys(): Promise<KeySet> {
    const { jwks_uri: address } = (await configuration()).serverMetadata()
    if (address === undefined) throw toProviderError(new Error('the provider publishes no keys'))
    // Also where it has moved.
    if (keySet?.address !== address) keySet = { address, keys: keysAt(address) }
    return keySet.keys
  }

  return {
    configuration,
    /**
     * Reads the keys if they are old.
     * @throws GatewayError `upstream.*`
     */
    async readKeys(): Promise<void> {
      const set = await keys()
      if (!set.fresh) await set.reload().catch(throwProviderError)
    },
    /**
     * The claims of a token that the provider signed for this client, by an asymmetric algorithm.
     * @param more further checks, such as `maxTokenAge`
     * @throws GatewayError `upstream.*`
     */
    async verify(token: string, more: JWTVerifyOptions = {}): Promise<JWTPayload> {
      const set = await keys()
      const { issuer: expected } = (await configuration()).serverMetadata()
      const checks = {
        issuer: expected,
        audience: clientId,
        algorithms,
        clockTolerance: clockToleranceSeconds,
        ...more
      }
      const check = async () => (await jwtVerify(token, set, checks)).payload
      return await check()
        .catch(async error => {
          if (!(error instanceof errors.JWKSNoMatchingKey) || steadyNow() < rereadAt) throw error
          rereadAt = steadyNow() + rereadMs
          await set.reload()
          return await check()
        })
        .catch(throwProviderError)
    }
  }
}

function keysAt(address: string): KeySet {
  return createRemoteJWKSet(new URL(address), {
    [customFetch]: boundedFetch,
    timeoutDuration: callMs,
    // `verify` reads them again itself.
    cooldownDuration: Infinity
  })
}

/** By POST where the provider takes that, else by HTTP Basic (OpenID Connect Core 1.0 §9). */
function authentication(secret: string): client.ClientAuth {
  if (secret === '') return client.None()
  const [byPost, byBasic] = [client.ClientSecretPost(secret), client.ClientSecretBasic(secret)]
  return (server, ...others) => {
    const methods = server.token_endpoint_auth_methods_supported ?? []
    return (methods.includes('client_secret_post') ? byPost : byBasic)(server, ...others)
  }
}

/** @throws what {@link toProviderError} makes of `error` */
export function throwProviderError(error: unknown): never {
  throw toProviderError(error)
}

/**
 * A provider that cannot answer is 503: nobody is signed out, or refused. The reason, for the log,
 * holds no token.
 */
export function toProviderError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const cause = new Error(`the OpenID provider: ${reasonOf(error)}`)
  if (isTimeout(error)) return new GatewayError('upstream.timeout', { status: 503, cause })
  if (isAway(error)) return new GatewayError('upstream.refused', { status: 503, cause })
  return new GatewayError('upstream.invalid', { cause })
}

function isTimeout(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout) return true
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
  return code === 'OAUTH_TIMEOUT' || name === 'TimeoutError'
}

/** It cannot be reached, or answers that it fails. `fetch` throws a TypeError. */
function isAway(error: unknown): boolean {
  if (error instanceof TypeError) return true
  if (error instanceof client.ResponseBodyError) return error.status >= 500
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown }
  if (cause instanceof TypeError) return true
  return code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' || code === 'ERR_JOSE_GENERIC'
}

/** The messages of the error and its causes; an error of OAuth says more in two members. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = error as { code?: unknown }
  const told =
    error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError
      ? [error.error, error.error_description ?? '']
      : [error.message, typeof code === 'string' ? `(${code})` : '']
  const isClock = code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' || code === 'ERR_JWT_EXPIRED'
  const advice = isClock ? ': its clock or that of this machine is wrong' : ''
  const text = told.filter(each => each !== '').join(' ') + advice
  return error.cause instanceof Error ? `${text}: ${reasonOf(error.cause)}` : text
}
