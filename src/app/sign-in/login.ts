/**
 * `POST` sign-in: asks each credential source until one vouches for the password, opens the
 * session, and answers in the console's dialect.
 */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchemaValidationError
} from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { loginBody } from '../../config/schema/request-bodies.ts'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import { escapeStep } from '../../json/pointer.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import { decryptPassword } from '../../login/password-cipher.ts'
import type { TokenNames } from '../../proxy/token-names.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live, Session } from '../../session/types.ts'
import { authorityOf } from '../../shaping/current-user.ts'
import { addOwn, sendAnswer } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { leavingOf } from '../hooks/leaving.ts'
import { expireTokenCookies, openSession } from '../hooks/session.ts'
import { endUnopened, endUnread, refuseBeforeOpening, rereadFormer } from './back-end-sessions.ts'
import { createSignInGuard, type SignInGuard } from './guard.ts'
import { createKnownBrowsers } from './known-browser.ts'
import {
  countRefusal,
  countUndecided,
  refusalError,
  refusalKindOf,
  refuseBlocked,
  refuseWithStatus200
} from './refusals.ts'
import { consoleRequest, firstVouching, type VouchedUser } from './vouching.ts'

export function addLogin(scope: FastifyInstance): void {
  const { gateway } = scope
  const { gateway: config, limits } = gateway.config
  const maxBody = limits.sizes.login
  const browsers = limits.lockout.knownBrowser ? createKnownBrowsers(gateway) : undefined
  const guard = createSignInGuard(gateway, { browsers })
  addOwn(scope, 'login', {
    bodyLimit: maxBody,
    schema: { body: loginBody(config.login.fields) },
    attachValidation: true,
    config: { access: 'public', maxBody },
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      const decided = { by: '', type: '' }
      try {
        return await signIn(request, reply, guard, decided)
      } catch (error) {
        const refusal = toGatewayError(error)
        gateway.counters.onSignIn(outcomeOf(refusal), decided.by)
        if (refusal.code !== 'login.blocked-by-operator') throw error
        return refuseBlocked(reply, decided.type, refusal)
      }
    }
  })
}

interface Decided {
  /** The name of the credential source that vouched, or whose refusal is sent. */
  by: string
  /** The kind of sign-in that the console sent. */
  type: string
}

async function signIn(
  request: FastifyRequest,
  reply: FastifyReply,
  guard: SignInGuard,
  decided: Decided
): Promise<unknown> {
  const { gateway } = request.server
  const { envelope, sessions, counters } = gateway
  const { login } = gateway.config.gateway
  // No coding is decoded here, and a coded body must not be read as it is.
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new GatewayError('request.type')
  }
  const body = readBody(request, login.fields)
  request.actor = body.username
  decided.type = body.type
  const leaving = leavingOf(reply.raw).signal
  const attempt = await guard(request, body.username, leaving)
  // An unreachable store must not count as a failed sign-in.
  const refund = async (error: unknown): Promise<never> => {
    await attempt.refund()
    throw error
  }
  const verdict = await firstVouching(gateway.sources, {
    username: body.username,
    password: body.password,
    extra: withoutTokens(body.extra, gateway.tokenNames),
    address: clientAddress(request),
    requestId: request.id,
    trail: request.trail,
    request: consoleRequest(request)
  })
  if ('failure' in verdict) {
    await countUndecided(attempt, verdict)
    throw verdict.failure
  }
  decided.by = verdict.source
  if ('vouched' in verdict) {
    await countRefusal(attempt, verdict, request, body.username)
    const error = refusalError(verdict)
    if (login.refusedStatus === 401) throw error
    counters.onSignIn(verdict.kind ?? 'refused', decided.by)
    return refuseWithStatus200(reply, body.type, error)
  }
  await refuseBeforeOpening(request, verdict, leaving).catch(refund)
  const former = await rereadFormer(request)
  const opened = await openFor(request, body, verdict).catch(async error => {
    endUnopened(request, verdict)
    return await refund(error)
  })
  await attempt.refund()
  attempt.remember(reply)
  if (former !== undefined) signOutAtSource(gateway, former.session, request)
  if (leaving.aborted) await endUnread(request, opened)
  leaving.throwIfAborted()
  expireTokenCookies(reply)
  counters.onSignIn('accepted', decided.by)
  logSignIn(request, verdict, opened.session)
  const answer = gateway.answers.login
  if (answer !== undefined) {
    const value = answer.render({ ...opened, ...sessions.times() })
    return sendAnswer(reply, answer, envelope.success(value, undefined, answer.placement))
  }
  return envelope.login({ type: body.type, authority: authorityOf(verdict.result.identity) })
}

/** Back-ends read a member of a form as they read the query parameter of its name. */
function withoutTokens(extra: Body['extra'], { query }: TokenNames): Body['extra'] {
  if (query === undefined) return extra
  return Object.fromEntries(Object.entries(extra).filter(([name]) => !query.isToken(name)))
}

/** Opens the session of a user whom a source vouches for. */
function openFor(
  request: FastifyRequest,
  { remember }: Body,
  { source, result: { identity, credential, password } }: VouchedUser
): Promise<Live> {
  const { cookie, sessions } = request.server.gateway
  if (cookie.options.secure && request.protocol !== 'https') warnOnce(sessions, request)
  return openSession(request, {
    identity,
    source,
    remembered: remember,
    address: clientAddress(request),
    agent: (request.headers['user-agent'] ?? '').slice(0, 256),
    ...(credential && { credential }),
    ...(password !== undefined && { password })
  })
}

function logSignIn(
  request: FastifyRequest,
  { source, result: { identity } }: VouchedUser,
  session: Session
): void {
  request.log.info(
    {
      event: 'login',
      user: identity.username,
      userId: identity.id,
      roles: identity.roles,
      source,
      session: session.id,
      address: clientAddress(request)
    },
    'signed in'
  )
}

/** Keyed by the sessions of this process, which outlive reloads: one line is enough. */
const warned = new WeakSet<Sessions>()

function warnOnce(sessions: Sessions, { log }: FastifyRequest): void {
  if (warned.has(sessions)) return
  warned.add(sessions)
  log.warn(
    { event: 'login.insecure' },
    'a sign-in seems to have come over plain http: a browser then drops the secure session cookie ' +
      'and shows the sign-in page again. Serve the console by https, and name the proxy that ends ' +
      'TLS in server.trustedProxies; it has to send X-Forwarded-Proto'
  )
}

function outcomeOf({ code, status }: GatewayError): string {
  if (code === 'login.refused') return 'refused'
  if (code === 'login.blocked-by-operator') return 'blocked'
  const kind = refusalKindOf(code)
  if (kind !== undefined) return kind
  if (status === 429) return 'limited'
  return status >= 500 || status === 409 ? 'failed' : 'malformed'
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
  const { cipher } = fields
  return {
    username: username as string,
    password:
      cipher === undefined ? (password as string) : decryptPassword(password as string, cipher),
    remember: remember === true,
    type: typeof type === 'string' ? type.slice(0, 64) : 'account',
    extra
  }
}

/** The advice for a sign-in body with these faults. */
function needOf(
  faults: readonly FastifySchemaValidationError[],
  { username, password, remember }: GatewayConfig['login']['fields']
): string {
  const isWrong = (name: string) =>
    faults.some(
      ({ instancePath, params }) =>
        params['missingProperty'] === name || instancePath === `/${escapeStep(name)}`
    )
  if (isWrong(username)) return `Sign-in needs "${username}", a text of 1 to 255 characters.`
  if (isWrong(password)) return `Sign-in needs "${password}", a text of 1 to 1024 characters.`
  return isWrong(remember) ? `"${remember}" is true or false.` : 'Sign-in needs a JSON object.'
}
