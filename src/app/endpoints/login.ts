/**
 * `POST` sign-in: asks each credential source until one vouches, opens the session, answers in the
 * console's dialect.
 */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchemaValidationError
} from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { loginBody } from '../../config/schema/request-bodies.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { clientAddress } from '../hooks/address.ts'
import { replyWith } from '../hooks/errors.ts'
import type { SignInGuard } from '../hooks/sign-in-guard.ts'
import { liveSession, openSession, type SessionCookie } from '../hooks/session.ts'
import {
  type CredentialSource,
  signOutAtSource,
  type SignInResult
} from '../../login/credential-source.ts'
import { authorityOf } from '../../shaping/current-user.ts'
import type { Sessions } from '../../session/session.ts'

interface Options {
  readonly paths: readonly string[]
  readonly maxBody: number
  readonly config: GatewayConfig['login']
  readonly sources: readonly CredentialSource[]
  readonly signInGuard: SignInGuard
  readonly sessions: Sessions
  readonly cookie: SessionCookie
  readonly expireTokenCookies: (reply: FastifyReply) => void
  readonly envelope: Envelope
  readonly onOutcome: (outcome: SignInOutcome) => void
}

type SignInOutcome = 'accepted' | 'refused' | 'limited' | 'malformed' | 'failed'

export function addLogin(scope: FastifyInstance, options: Options): void {
  const {
    paths,
    maxBody,
    config,
    sources,
    signInGuard,
    sessions,
    cookie,
    expireTokenCookies,
    envelope,
    onOutcome
  } = options
  const schema = { body: loginBody(config.fields) }
  for (const url of paths) {
    scope.route({
      method: [...ownRoutes.login.methods],
      url,
      bodyLimit: maxBody,
      schema,
      attachValidation: true,
      config: { route: ownRoutes.login.name, access: 'public', maxBody },
      handler: answer
    })
  }

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    try {
      return await signIn(request, reply)
    } catch (error) {
      onOutcome(outcomeOf(toGatewayError(error)))
      throw error
    }
  }

  async function signIn(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    // Nothing here would undo a coding, so none is taken for what it is not.
    if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
      throw new GatewayError('request.type')
    }
    const { username, password, remember, type, extra } = readBody(request, config.fields)
    request.actor = username
    const address = clientAddress(request)
    const attempt = await signInGuard.attempt(request, username)
    // What could not be decided was no failure of who tried.
    const undecided = async (error: unknown): Promise<never> => {
      await attempt.refund()
      throw error
    }
    const vouched = await firstVouching(sources, {
      username,
      password,
      extra,
      address,
      requestId: request.id
    }).catch(undecided)
    if (vouched === undefined) {
      await attempt.refused()
      request.log.info({ event: 'login.refused', user: username, address }, 'sign-in refused')
      const refused = new GatewayError('login.refused')
      if (config.refusedStatus === 401) throw refused
      onOutcome('refused')
      return replyWith(
        reply,
        new GatewayError('login.refused', { status: 200 }),
        envelope.loginRefused(refused, type, request.id)
      )
    }
    const {
      source,
      verdict: { identity, credential, file }
    } = vouched
    if (cookie.options.secure && request.protocol !== 'https') warnOnce(sessions, request)
    const former = liveSession(request)
    const session = await openSession(request, cookie, sessions, {
      identity,
      source,
      remembered: remember,
      address,
      agent: (request.headers['user-agent'] ?? '').slice(0, 256),
      ...(credential && { credential }),
      ...(file && { file })
    }).catch(undecided)
    await attempt.refund()
    attempt.remember(reply)
    if (former !== undefined) signOutAtSource(sources, former, request.log)
    expireTokenCookies(reply)
    onOutcome('accepted')
    request.log.info(
      {
        event: 'login',
        user: identity.username,
        userId: identity.id,
        roles: identity.roles,
        source,
        session: session.id,
        address
      },
      'signed in'
    )
    return envelope.login({ type, authority: authorityOf(identity) })
  }
}

/** By the sessions of this process, which outlive each reload: one line is enough. */
const warned = new WeakSet<Sessions>()

function warnOnce(sessions: Sessions, { log }: FastifyRequest): void {
  if (warned.has(sessions)) return
  warned.add(sessions)
  log.warn(
    { event: 'login.insecure' },
    'a sign-in came over plain http, as far as the gateway sees: a browser drops the secure session ' +
      'cookie and shows the sign-in page again. Let people come by https and name the proxy that ' +
      'ends TLS in server.trustedProxies, which has to send X-Forwarded-Proto'
  )
}

function outcomeOf({ code, status }: GatewayError): SignInOutcome {
  if (code === 'login.refused') return 'refused'
  if (status === 429) return 'limited'
  return status >= 500 || status === 409 ? 'failed' : 'malformed'
}

/**
 * @throws GatewayError when nobody vouches and one source could not tell: unknown is not refused
 */
async function firstVouching(
  sources: readonly CredentialSource[],
  attempt: Parameters<CredentialSource['verify']>[0]
) {
  let undecided: unknown
  for (const source of sources) {
    try {
      const verdict: SignInResult = await source.verify(attempt)
      if (verdict.vouched) return { source: source.name, verdict }
      if (verdict.isFinal === true) break
    } catch (error) {
      undecided ??= error
    }
  }
  if (undecided !== undefined) throw undecided
  return undefined
}

interface Body {
  readonly username: string
  readonly password: string
  readonly remember: boolean
  readonly type: string
  readonly extra: Record<string, unknown>
}

/** @throws GatewayError `request.malformed`, which names the first member that is wrong */
function readBody(
  { body, validationError }: FastifyRequest,
  fields: GatewayConfig['login']['fields']
): Body {
  if (validationError !== undefined) {
    const message = needOf(validationError.validation, fields)
    throw new GatewayError('request.malformed', { message })
  }
  const {
    [fields.username]: username,
    [fields.password]: password,
    [fields.remember]: remember,
    ...extra
  } = body as Record<string, unknown>
  const { type } = extra
  return {
    username: username as string,
    password: password as string,
    remember: remember === true,
    type: typeof type === 'string' ? type.slice(0, 64) : 'account',
    extra
  }
}

/** What a sign-in body needs that has these faults. */
function needOf(
  faults: readonly FastifySchemaValidationError[],
  { username, password, remember }: GatewayConfig['login']['fields']
): string {
  const isWrong = (name: string) =>
    faults.some(
      ({ instancePath, params }) =>
        params['missingProperty'] === name || instancePath === `/${escapePointer(name)}`
    )
  if (isWrong(username)) return `Sign-in needs "${username}", a text of 1 to 255 characters.`
  if (isWrong(password)) return `Sign-in needs "${password}", a text of 1 to 1024 characters.`
  return isWrong(remember) ? `"${remember}" is true or false.` : 'Sign-in needs a JSON object.'
}

/** RFC 6901 §3 */
function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
