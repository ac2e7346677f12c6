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
import { decryptPassword } from '../../login/password-cipher.ts'
import type { TokenNames } from '../../proxy/token-names.ts'
import type { Live } from '../../session/types.ts'
import { authorityOf } from '../../shaping/current-user.ts'
import { addOwn, sendAnswer } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { leavingOf } from '../hooks/sending.ts'
import { expireTokenCookies } from '../hooks/session.ts'
import { openFor } from './back-end-sessions.ts'
import { createSignInGuard, type SignInGuard } from './guard.ts'
import { createKnownBrowsers } from './known-browser.ts'
import { consoleRequest, mustVouch } from './vouching.ts'

const maxSignInBody = 4096

export function addLogin(scope: FastifyInstance): void {
  const { gateway } = scope
  const { gateway: config, limits } = gateway.config
  const browsers = limits.lockout.knownBrowser ? createKnownBrowsers(gateway) : undefined
  const guard = createSignInGuard(gateway, { browsers })
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
  const { username, password, extra, remember } = readBody(
    request,
    gateway.config.gateway.login.fields
  )
  const address = clientAddress(request)
  trail.user = username
  const leaving = leavingOf(reply.raw).signal
  const attempt = await guard(request, username, leaving)
  const signingIn = {
    username,
    password,
    extra: withoutTokens(extra, gateway.tokenNames),
    address,
    requestId: request.id,
    trail,
    request: consoleRequest(request)
  }
  const vouched = await mustVouch(gateway.sources, signingIn, attempt, request.log)
  trail.source = vouched.source
  let opened: Live
  try {
    opened = await openFor(request, vouched, remember, leaving)
  } finally {
    // An unreachable store must not count as a failed sign-in.
    await attempt.refund()
  }
  attempt.remember(reply)
  expireTokenCookies(reply)
  gateway.counters.onSignIn('accepted', vouched.source)
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
  request.server.gateway.counters.onSignIn(outcome ?? outcomeOf(error), trail.source ?? '')
  // It signed nobody in.
  trail.source = undefined
  if (code === 'login.blocked-by-operator') {
    const subject = { user: trail.user, address: clientAddress(request) }
    const fields = { event: 'login.refused', ...subject, outcome, code }
    request.log.info(fields, 'sign-in refused: an operator has blocked the user')
  }
  throw error
}

/** Back-ends read a member of a form as they read the query parameter of its name. */
function withoutTokens(
  extra: Readonly<Record<string, unknown>>,
  { query }: TokenNames
): Readonly<Record<string, unknown>> {
  if (query === undefined) return extra
  return Object.fromEntries(Object.entries(extra).filter(([name]) => !query.isToken(name)))
}

/** The kind of sign-in that the console sent, such as with a password or by a text message. */
function typeOf(body: unknown): string {
  const { type } = body as Record<string, unknown>
  return typeof type === 'string' ? type.slice(0, 64) : 'account'
}

/** @throws GatewayError `request.malformed`, which names the first member that is wrong */
function readBody(
  { body, validationError }: FastifyRequest,
  fields: GatewayConfig['login']['fields']
) {
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
  const { cipher } = fields
  return {
    username: username as string,
    password:
      cipher === undefined ? (password as string) : decryptPassword(password as string, cipher),
    remember: remember === true,
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
