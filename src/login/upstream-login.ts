/** Credential source: a back-end's own sign-in, with requests and responses described by config. */
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors.ts'
import type { Credential, Session } from '../session/record.ts'
import type { SignInAttempt, CredentialSource, SignInResult } from './credential-source.ts'
import { invalid, LoginResponse, maxResponseBytes, type RawResponse } from './login-response.ts'

/** Sends a request to the back-end. Passed in, since login does not import proxy. */
export type Send = (options: {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  maxBytes: number
}) => Promise<RawResponse>

interface Options {
  /** Of the credential source. */
  readonly name: string
  readonly config: UpstreamLoginConfig
  readonly send: Send
  /** The form this upstream takes credentials in: `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credentialStyle: string
}

type Refresh = NonNullable<UpstreamLoginConfig['refresh']>

const maxSignOutMs = 5000

export function createUpstreamLogin(options: Options): CredentialSource {
  const { name, config } = options
  const { refresh } = config
  return {
    name,
    verify: attempt => verify(options, attempt),
    ...(refresh !== undefined && {
      renewBeforeMs: refresh.before,
      renew: session => renew(options, refresh, session)
    }),
    signOut: session => signOut(options, session)
  }
}

async function verify({ config, send }: Options, attempt: SignInAttempt): Promise<SignInResult> {
  const raw = await send({
    method: 'POST',
    path: config.path,
    headers: {
      'accept': 'application/json',
      'content-type':
        config.format === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
      'x-forwarded-for': attempt.address,
      'x-request-id': attempt.requestId,
      ...config.headers
    },
    body: writeBody(config, attempt),
    timeoutMs: config.timeout,
    maxBytes: maxResponseBytes
  })
  const response = new LoginResponse(config, raw)
  if (response.matches(config.refused)) return { vouched: false }
  if (!response.matches(config.success)) {
    throw invalid(`the sign-in response (status ${raw.status}) is neither a success nor a refusal`)
  }
  const credential = response.credential()
  return { vouched: true, identity: response.identity(attempt.username), credential }
}

/** A new credential, or undefined where the back-end refuses. */
async function renew(
  { config, send, credentialStyle }: Options,
  refresh: Refresh,
  { credential }: Session
): Promise<Credential | undefined> {
  if (credential === undefined) return undefined
  const { token = '', refreshToken = '' } = credential
  const hasBody = refresh.method !== 'GET'
  const raw = await send({
    method: refresh.method,
    path: refresh.path,
    headers: {
      accept: 'application/json',
      ...(hasBody && { 'content-type': 'application/json' }),
      ...credentialHeaders(credential, credentialStyle)
    },
    ...(hasBody && { body: JSON.stringify(fill(refresh.body, { token, refreshToken })) }),
    timeoutMs: config.timeout,
    maxBytes: maxResponseBytes
  })
  const response = new LoginResponse(config, raw)
  if (response.matches(config.refused)) return undefined
  return response.renewedCredential(refresh, credential)
}

async function signOut(
  { config: { logout, timeout }, send, credentialStyle }: Options,
  { credential }: Session
): Promise<void> {
  if (logout === undefined || credential === undefined) return
  const { status } = await send({
    method: logout.method,
    path: logout.path,
    headers: { accept: 'application/json', ...credentialHeaders(credential, credentialStyle) },
    timeoutMs: Math.min(timeout, maxSignOutMs),
    maxBytes: maxResponseBytes
  })
  if (status >= 400) {
    throw new GatewayError('upstream.error', {
      cause: new Error(`the sign-out was answered with status ${status}`)
    })
  }
}

/** The session's credential in the form that this upstream takes. */
function credentialHeaders(
  { token, cookies }: Credential,
  credentialStyle: string
): Record<string, string> {
  const defaultStyle = token === undefined ? 'cookies' : 'bearer'
  const style = credentialStyle === 'none' ? defaultStyle : credentialStyle
  return {
    ...(style === 'bearer' && token !== undefined && { authorization: `Bearer ${token}` }),
    ...(style.startsWith('header:') && token !== undefined && { [style.slice(7)]: token }),
    ...(cookies !== undefined && { cookie: cookies })
  }
}

function writeBody(
  config: UpstreamLoginConfig,
  { username, password, extra }: SignInAttempt
): string {
  const body = {
    ...(config.passExtra ? extra : {}),
    ...(fill(config.body, { username, password }) as Record<string, unknown>)
  }
  if (config.format === 'json') return JSON.stringify(body)
  return new URLSearchParams(
    Object.entries(body).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    ])
  ).toString()
}

/** Puts values into the `{name}`s of a template, at any depth. */
function fill(template: unknown, values: Readonly<Record<string, string>>): unknown {
  // A function as replacement: a password may contain "$&", which a string would interpret.
  if (typeof template === 'string') {
    return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? (values[name] ?? '') : whole
    )
  }
  if (Array.isArray(template)) return template.map(each => fill(each, values))
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([key, value]) => [key, fill(value, values)])
    )
  }
  return template
}
