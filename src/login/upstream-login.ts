/** Credential source: a back-end's own sign-in, with requests and responses described by config. */
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors/errors.ts'
import type { AttemptPurpose, Recorded, Trail } from '../observability/trail.ts'
import type { Credential, Identity, Session } from '../session/types.ts'
import {
  callWith,
  contentTypes,
  type CredentialForm,
  fill,
  type Send,
  withLowerNames,
  withQuery,
  writeBody
} from './back-end-call.ts'
import type { SignInAttempt, CredentialSource, SignInResult } from './credential-source.ts'
import { invalid, LoginResponse, maxResponseBytes } from './login-response.ts'
import { type PassedOn, passedOn } from './passed-on.ts'

interface Options extends CredentialForm {
  /** Of the credential source. */
  readonly name: string
  readonly config: UpstreamLoginConfig
  readonly send: Send
  /** Called where a sign-in failed after the back-end's, and its session could not be ended. */
  readonly onFailed?: (error: unknown) => void
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
      renew: (session, trail) => renew(options, refresh, session, trail)
    }),
    ...(config.logout !== undefined && {
      signOut: async ({ credential }: Session, trail?: Trail) => {
        if (credential !== undefined) await signOut(options, credential, trail)
      }
    })
  }
}

async function verify(options: Options, attempt: SignInAttempt): Promise<SignInResult> {
  const { config, send } = options
  const passed = passedOn(config, attempt.request)
  const raw = await send({
    method: 'POST',
    path: withQuery(config.path, passed.query),
    headers: {
      'accept': 'application/json',
      'content-type': contentTypes[config.format],
      ...headersOf(attempt, passed),
      ...(passed.cookies !== '' && { cookie: passed.cookies }),
      ...withLowerNames(config.headers)
    },
    body: bodyOf(config, attempt),
    timeoutMs: config.timeout,
    maxBytes: maxResponseBytes,
    recorded: recordedFor('sign-in', attempt.trail)
  })
  const response = new LoginResponse(config, raw)
  const refusal = response.refusal()
  if (refusal !== undefined) return refusal
  if (!response.matches(config.success)) {
    throw invalid(`the sign-in response (status ${raw.status}) is neither a success nor a refusal`)
  }
  const credential = response.credential(passed.cookies)
  try {
    const identity = await identify(options, attempt, { response, credential, passed })
    return { vouched: true, identity, credential }
  } catch (error) {
    // Without this the back-end's session would stay open, though nobody is signed in.
    signOut(options, credential, attempt.trail).catch(options.onFailed ?? (() => {}))
    throw error
  }
}

interface SignedIn {
  readonly response: LoginResponse
  readonly credential: Credential
  readonly passed: PassedOn
}

/** @throws GatewayError where the back-end does not tell who signed in */
async function identify(
  { config, send, credentialStyle, credentialScheme }: Options,
  attempt: SignInAttempt,
  { response, credential, passed }: SignedIn
): Promise<Identity> {
  const { from } = config.user
  if (from === undefined) return response.identity(attempt.username)
  const { path, method, query, success, timeout } = from
  const headers = headersOf(attempt, passed)
  const raw = await callWith(
    {
      send,
      timeoutMs: timeout,
      recorded: recordedFor('sign-in', attempt.trail),
      headers,
      credentialStyle,
      credentialScheme
    },
    { path, method, query },
    credential
  )
  const userResponse = new LoginResponse(config, raw)
  if (!userResponse.matches(success)) {
    throw invalid(`the response of user.from (status ${raw.status}) does not tell the user`)
  }
  return userResponse.identity(attempt.username)
}

function recordedFor(purpose: AttemptPurpose, trail: Trail | undefined): Recorded | undefined {
  return trail && { trail, purpose }
}

function headersOf({ address, requestId }: SignInAttempt, { headers }: PassedOn) {
  return { 'x-forwarded-for': address, 'x-request-id': requestId, ...headers }
}

/** A new credential, or undefined where the back-end refuses. */
async function renew(
  { config, send, credentialStyle, credentialScheme }: Options,
  refresh: Refresh,
  { credential }: Session,
  trail?: Trail
): Promise<Credential | undefined> {
  if (credential === undefined) return undefined
  const { body, ...call } = refresh
  const recorded = recordedFor('renewal', trail)
  const raw = await callWith(
    { send, timeoutMs: config.timeout, recorded, credentialStyle, credentialScheme },
    refresh.method === 'GET' ? call : { ...call, body },
    credential
  )
  const response = new LoginResponse(config, raw)
  if (response.matches(refresh.refused ?? config.refused)) return undefined
  return response.renewedCredential(refresh, credential)
}

async function signOut(
  { config: { logout, timeout }, send, credentialStyle, credentialScheme }: Options,
  credential: Credential,
  trail: Trail | undefined
): Promise<void> {
  if (logout === undefined) return
  const timeoutMs = Math.min(timeout, maxSignOutMs)
  const recorded = recordedFor('sign-out', trail)
  const { status } = await callWith(
    { send, timeoutMs, recorded, credentialStyle, credentialScheme },
    logout,
    credential
  )
  if (status >= 400) {
    throw new GatewayError('upstream.error', {
      cause: new Error(`the sign-out was answered with status ${status}`)
    })
  }
}

function bodyOf(config: UpstreamLoginConfig, { username, password, extra }: SignInAttempt): string {
  const body = {
    ...(config.passExtra ? extra : {}),
    ...(fill(config.body, { username, password }) as Record<string, unknown>)
  }
  return writeBody(body, config.format)
}
