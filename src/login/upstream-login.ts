/** Sources by calls of config: a back-end's sign-in, and tokens (`exchange`) for other users. */
import type { Logger } from 'pino'
import type { OutcomeTest } from '../config/schema/response-tests.ts'
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import type { ExchangeConfig } from '../config/schema/upstreams.ts'
import { GatewayError, malformed } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import { invalid, type WholeResponse } from '../proxy/response.ts'
import { credentialIn } from '../session/credentials.ts'
import type { Credential, Renewed, Session } from '../session/types.ts'
import { ask, type BackEnd, callWith, fill } from './back-end-call.ts'
import type {
  ConsoleRequest,
  CredentialSource,
  PasswordSource,
  SignInAttempt,
  SignInResult
} from './credential-source.ts'
import { cookiesAfter, LoginResponse } from './login-response.ts'

interface Options {
  readonly name: string
  readonly backEnd: BackEnd
  readonly config: UpstreamLoginConfig
  readonly log?: Pick<Logger, 'warn'>
}

type Refresh = NonNullable<UpstreamLoginConfig['refresh']>
type Logout = NonNullable<UpstreamLoginConfig['logout']>

const signOutMs = 5000
const notEnded = 'a sign-in failed, and its session at the back-end could not be ended'
/** Of a header or cookie that is passed on. */
const maxPassedLength = 1024

export function createUpstreamLogin({ config, ...others }: Options): PasswordSource {
  const outcomes = withUsual(config.outcomes, [400, 401, 403, 404, 422])
  const options = { ...others, config: { ...config, outcomes } }
  const { name } = others
  const { refresh, logout } = config
  return {
    name,
    verify: attempt => verify(options, attempt),
    ...(refresh !== undefined && {
      renew: async ({ credential }, trail) =>
        credential && (await renew(options, refresh, credential, trail))
    }),
    ...(logout !== undefined && {
      signOut: ({ credential }, trail) => signOut(options, logout, credential, trail)
    })
  }
}

/** For outcomes that config does not name. */
function withUsual(outcomes: readonly OutcomeTest[], refused: number[]): OutcomeTest[] {
  const usual: OutcomeTest[] = [
    { is: 'success', status: [200, 201, 204] },
    { is: 'refused', status: refused }
  ]
  return [...outcomes, ...usual.filter(({ is }) => !outcomes.some(each => each.is === is))]
}

async function verify(options: Options, attempt: SignInAttempt): Promise<SignInResult> {
  const { name: source, config, log } = options
  const { username, password, extra, address, requestId, trail } = attempt
  const { headers: passedHeaders, cookies: passedCookies } = passedOn(config, attempt.request)
  const fixedHeaders = { 'x-forwarded-for': address, 'x-request-id': requestId, ...passedHeaders }
  const asking = { fixedHeaders, trail, purpose: 'sign-in' } as const
  const cookies = await cookiesBefore(options, asking, passedCookies)
  const { path, query, format, headers } = config
  const body = { ...(config.passExtra && extra), ...fill(config.body, { username, password }) }
  const call = { ...asking, method: 'POST', path, query, format, headers, body }
  const raw = await ask(options.backEnd, call, cookies === '' ? {} : { cookies })
  const response = new LoginResponse(config, raw)
  const outcome = response.outcome()
  if (outcome === undefined) {
    if (raw.status === 429) throw throttled(raw)
    throw invalid(`the sign-in response (status ${raw.status}) is neither a success nor a refusal`)
  }
  if (outcome !== 'success') return response.refusal(outcome)
  const credential = response.credential({ cookies })
  try {
    const { from } = config.user
    const telling = from ? await askUser(options, from, asking, credential) : response
    const identity = telling.identity(config.user, username)
    return {
      vouched: true,
      identity,
      credential: { ...credential, ...telling.cookies(credential) }
    }
  } catch (error) {
    // Without this the back-end's session would stay open, though nobody is signed in.
    if (config.logout !== undefined) {
      signOut(options, config.logout, credential, trail).catch((err: unknown) =>
        log?.warn({ event: 'logout.source', source, err }, notEnded)
      )
    }
    throw error
  }
}

/** The back-end bounds sign-ins itself, and has not looked at the password. */
function throttled({ headers }: WholeResponse): GatewayError {
  const cause = 'the back-end answered the sign-in with status 429'
  const [seconds] = /^\d{1,6}$/.exec(String(headers['retry-after'])) ?? []
  const more = seconds === undefined ? {} : { retryAfter: Number(seconds) }
  return new GatewayError('limit.exceeded', { cause, ...more })
}

type Asking = Pick<Parameters<typeof ask>[1], 'fixedHeaders' | 'trail' | 'purpose'>

/** With those of a first call, by which back-ends know that the sign-in is of the same browser. */
async function cookiesBefore(options: Options, asking: Asking, passed: string): Promise<string> {
  const { before: path, cookies: names, passCookies } = options.config
  if (path === undefined) return passed
  const raw = await ask(options.backEnd, { ...asking, method: 'GET', path })
  if (raw.status >= 400) throw invalid(`the call before the sign-in has status ${raw.status}`)
  return cookiesAfter(passed, raw.headers['set-cookie'], [...names, ...passCookies])
}

async function askUser(
  options: Options,
  from: NonNullable<UpstreamLoginConfig['user']['from']>,
  asking: Asking,
  credential: Credential
): Promise<LoginResponse> {
  const { success, ...call } = from
  const raw = await callWith(options.backEnd, { ...asking, ...call }, credential)
  const response = new LoginResponse(options.config, raw)
  if (response.matches(success)) return response
  throw invalid(`the response of user.from (status ${raw.status}) does not tell the user`)
}

async function renew(
  options: Options,
  { token, expires = options.config.expires, refused, body, ...call }: Refresh,
  credential: Credential,
  trail: Trail | undefined
): Promise<Renewed | undefined> {
  const of = { purpose: 'renewal', trail } as const
  const sent = { ...call, ...(call.method !== 'GET' && { body }), ...of }
  const raw = await callWith(options.backEnd, sent, credential)
  const response = new LoginResponse(options.config, raw)
  const isRefused = refused ? response.matches(refused) : response.outcome() === 'refused'
  if (isRefused) return undefined
  if (raw.status >= 300) throw invalid(`the renewal was answered with status ${raw.status}`)
  return { credential: response.credential(credential, { token, expires }) }
}

async function signOut(
  { backEnd }: Pick<Options, 'backEnd'>,
  logout: Logout,
  credential: Credential | undefined,
  trail: Trail | undefined
): Promise<void> {
  if (credential === undefined) return
  const call = { ...logout, timeoutMs: signOutMs, purpose: 'sign-out', trail } as const
  const { status } = await callWith(backEnd, call, credential)
  if (status < 400) return
  const cause = `the sign-out was answered with status ${status}`
  throw new GatewayError('upstream.error', { cause })
}

/** @throws GatewayError `request.malformed` for what is too long, or no text */
function passedOn(
  { upstream, passHeaders, passCookies }: UpstreamLoginConfig,
  { headers: sent, cookie }: ConsoleRequest = { headers: {}, cookie: () => '' }
) {
  const headers: Record<string, string> = {}
  for (const name of passHeaders) {
    const value = Object.hasOwn(sent, name) ? sent[name] : undefined
    if (value !== undefined) headers[name] = bounded(`header "${name}"`, value)
  }
  const cookies = passCookies.map(name => bounded(`cookie "${name}"`, cookie(upstream, name)))
  return { headers, cookies: cookies.filter(each => each !== '').join('; ') }
}

function bounded(what: string, value: unknown): string {
  if (typeof value === 'string' && value.length <= maxPassedLength) return value
  throw malformed(`The ${what} must be one text of at most ${maxPassedLength} characters.`)
}

interface ExchangeOptions extends Pick<Options, 'backEnd'> {
  readonly upstream: string
  readonly config: ExchangeConfig
  readonly bodyOf: (session: Session) => object
}

export function createTokenExchange(options: ExchangeOptions): CredentialSource {
  const { upstream, config } = options
  const { path, format, headers, logout } = config
  // Not 401: the back-end refuses the gateway then, and says nothing of the user.
  const outcomes = withUsual(config.outcomes, [400, 403, 404, 422])
  return {
    name: upstream,
    upstream,
    renew: async (session, trail) => {
      const raw = await ask(options.backEnd, {
        method: 'POST',
        path,
        format,
        body: options.bodyOf(session),
        headers,
        purpose: 'renewal',
        trail
      })
      const response = new LoginResponse({ ...config, outcomes }, raw)
      const outcome = response.outcome()
      if (outcome === 'success') return { credential: response.credential({}) }
      const reason = `the exchange for a token was answered with status ${raw.status}`
      if (outcome === undefined) throw invalid(reason)
      throw new GatewayError('route.unknown-user', { cause: reason })
    },
    ...(logout !== undefined && {
      signOut: (session, trail) => signOut(options, logout, credentialIn(session, upstream), trail)
    })
  }
}
