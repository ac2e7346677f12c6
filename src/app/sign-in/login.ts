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
import { type ErrorCode, GatewayError, toGatewayError } from '../../errors/errors.ts'
import { escapeStep } from '../../json/pointer.ts'
import { signOutAtSource, takesPasswords } from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { decryptPassword } from '../../login/password-cipher.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live, Session } from '../../session/types.ts'
import { authorityOf } from '../../shaping/current-user.ts'
import { addOwn, sendAnswer } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { leavingOf } from '../hooks/sending.ts'
import { abandonSession, expireTokenCookies, openSession } from '../hooks/session.ts'
import { createKnownBrowsers, createSignInGuard, type SignInGuard } from './guard.ts'
import { consoleRequest, mustVouch } from './vouching.ts'

const maxSignInBody = 4096

export function addLogin(scope: FastifyInstance): void {
  const { gateway } = scope
  const { gateway: config, limits } = gateway.config
  const browsers = limits.lockout.knownBrowser ? createKnownBrowsers(gateway) : undefined
  const guard = createSignInGuard(gateway, '', browsers)
  addOwn(scope, 'login', {
    schema: { body: loginBody(config.login.fields) },
    attachValidation: true,
    config: { access: 'public', maxBody: maxSignInBody },
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      // Those of the former session.
      Object.assign(request.trail, { userId: undefined, source: undefined })
      return await signIn(request, reply, guard).catch(error =>
        refuse(request, toGatewayError(error))
      )
    }
  })
}

async function signIn(
  request: FastifyRequest,
  reply: FastifyReply,
  guard: SignInGuard
): Promise<unknown> {
  const { trail } = request
  const { gateway } = request.server
  const { envelope, sessions } = gateway
  // No coding is decoded here, and a coded body must not be read as it is.
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new GatewayError('request.type')
  }
  const { username, password, extra, remember } = readBody(request)
  const address = clientAddress(request)
  trail.user = username
  const leaving = leavingOf(reply.raw).signal
  const attempt = await guard(request, username, leaving)
  const signingIn = {
    username,
    password,
    extra,
    address,
    requestId: request.id,
    trail,
    request: consoleRequest(request)
  }
  const vouched = await mustVouch(
    gateway.sources.filter(takesPasswords),
    signingIn,
    attempt,
    request.log
  )
  trail.source = vouched.source
  let opened: Live
  try {
    opened = await open(request, { ...vouched, remembered: remember }, leaving)
  } finally {
    // An unreachable store must not count as a failed sign-in.
    await attempt.refund()
  }
  attempt.remember(reply)
  expireTokenCookies(reply)
  gateway.counters.onSignIn(vouched.source, 'accepted')
  const { id: session, identity, source } = opened.session
  const { id: userId, username: user, roles } = identity
  request.log.info({ event: 'login', user, userId, roles, source, session, address }, 'signed in')
  const answer = gateway.answers.login
  if (answer !== undefined) {
    const value = answer.render({ ...opened, ...sessions.times() })
    return sendAnswer(reply, envelope.success(value, undefined, answer.placement))
  }
  return envelope.login({ type: typeOf(request.body), authority: authorityOf(identity) })
}

/**
 * Opens the session of a user whom a source vouches for, in the place of the browser's former one.
 * Where none is opened, that of the back-end ends as well.
 * @param leaving aborted when the client leaves: nobody would get the session
 * @throws StoreUnavailable; GatewayError `login.too-many`, `login.blocked-by-operator`, and
 *   `upstream.invalid` for a secret of the session's credential in the answer, such as a token in a
 *   member of the profile; the reason of `leaving`
 */
async function open(
  request: FastifyRequest,
  session: Session,
  leaving: AbortSignal
): Promise<Live> {
  const { gateway } = request.server
  const { sessions, cookie, answers } = gateway
  if (cookie.options.secure && request.protocol !== 'https') warnOnce(sessions, request)
  let opened: Live | undefined
  try {
    leaving.throwIfAborted()
    const now = sessions.now()
    const facts = { session, idleEnd: now, absoluteEnd: now, now, aheadMs: 0 }
    refuseLeak(answers.login?.render(facts), session, 'endpoints.login.answer')
    const former = request.live
    // Its token may have been renewed while the password was checked.
    const current = former && (await sessions.read(former.key).catch(() => undefined))
    const replaced = current !== undefined && 'live' in current ? current.live : former
    const agent = (request.headers['user-agent'] ?? '').slice(0, 256)
    opened = await openSession(request, { ...session, agent })
    if (replaced !== undefined) signOutAtSource(gateway, replaced.session, request)
    if (leaving.aborted) await abandonSession(request, opened)
    leaving.throwIfAborted()
    return opened
  } catch (error) {
    // Nobody else would ever end it.
    signOutAtSource(gateway, opened?.session ?? session, request)
    throw error
  }
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

/** The outcomes of refused sign-ins, as the metric counts them. */
const outcomes: Partial<Record<ErrorCode, string>> = {
  'login.refused': 'refused',
  'login.challenge': 'challenge',
  'login.blocked': 'blocked',
  'login.blocked-by-operator': 'blocked',
  'login.expired-password': 'expired-password'
}

function outcomeOf({ status }: GatewayError): string {
  if (status === 429) return 'limited'
  return status >= 500 || status === 409 ? 'failed' : 'malformed'
}

/** @throws `error` */
function refuse(request: FastifyRequest, error: GatewayError): never {
  const { trail } = request
  const { code } = error
  const outcome = outcomes[code]
  request.server.gateway.counters.onSignIn(trail.source ?? '', outcome ?? outcomeOf(error))
  // It signed nobody in.
  trail.source = undefined
  if (code === 'login.blocked-by-operator') {
    const subject = { user: trail.user, address: clientAddress(request) }
    const fields = { event: 'login.refused', ...subject, outcome, code }
    request.log.info(fields, 'sign-in refused: an operator has blocked the user')
  }
  throw error
}

/** The kind of sign-in that the console sent, such as with a password or by a text message. */
function typeOf(body: unknown): string {
  const { type } = body as Record<string, unknown>
  return typeof type === 'string' ? type.slice(0, 64) : 'account'
}

/** @throws GatewayError `request.malformed`, which names the first member that is wrong */
function readBody({ body, validationError, server }: FastifyRequest) {
  const { config, tokenNames } = server.gateway
  const { fields } = config.gateway.login
  if (validationError !== undefined) {
    const message = needOf(validationError.validation, fields)
    throw new GatewayError('request.malformed', { message })
  }
  const {
    [fields.username]: username,
    [fields.password]: password,
    [fields.remember]: remember,
    ...others
  } = body as Record<string, unknown>
  const { cipher } = fields
  return {
    username: username as string,
    password:
      cipher === undefined ? (password as string) : decryptPassword(password as string, cipher),
    remember: remember === true,
    // Back-ends read a member of a form as they read the query parameter of its name.
    extra: Object.fromEntries(
      Object.entries(others).filter(([name]) => tokenNames.query?.isToken(name) !== true)
    )
  }
}

/** The advice for a sign-in body with these faults. */
function needOf(
  faults: readonly FastifySchemaValidationError[],
  { username, password, remember }: GatewayConfig['login']['fields']
): string {
  const needs = [
    [username, `Sign-in needs "${username}", a text of 1 to 255 characters.`],
    [password, `Sign-in needs "${password}", a text of 1 to 1024 characters.`],
    [remember, `"${remember}" is true or false.`]
  ] as const
  const wrong = needs.find(([name]) =>
    faults.some(
      ({ instancePath, params }) =>
        params['missingProperty'] === name || instancePath === `/${escapeStep(name)}`
    )
  )
  return wrong?.[1] ?? 'Sign-in needs a JSON object.'
}
