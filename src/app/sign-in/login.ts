/** `POST` sign-in: asks the sources, opens the session, and answers in the console's dialect. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { loginBody } from '../../config/schema/own-endpoints.ts'
import { GatewayError, malformed } from '../../errors/errors.ts'
import { takesPasswords } from '../../login/credential-source.ts'
import { decryptPassword } from '../../login/password-cipher.ts'
import type { Live } from '../../session/types.ts'
import { authorityOf } from '../../shaping/answer.ts'
import { addOwn, sendAnswer } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { leavingOf } from '../hooks/sending.ts'
import { expireTokenCookies } from '../hooks/session.ts'
import { createKnownBrowsers, createSignInGuard, type SignInGuard } from './guard.ts'
import { open, recordSignedIn, refuse, consoleRequest, mustVouch } from './vouching.ts'

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
    handler: async (request, reply) => {
      // Those of the former session.
      Object.assign(request.trail, { userId: undefined, source: undefined })
      return await signIn(request, reply, guard).catch(error => refuse(request, error))
    }
  })
}

async function signIn(request: FastifyRequest, reply: FastifyReply, guard: SignInGuard) {
  const { trail } = request
  const { gateway } = request.server
  const { envelope, sourceFaults } = gateway
  // No coding is decoded here, and a coded body must not be read as it is.
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new GatewayError('request.type')
  }
  const sources = gateway.sources.filter(takesPasswords)
  // Ours are at a provider: the console shall go to its sign-in page.
  if (sources.length === 0) throw new GatewayError('session.none')
  const { username, password, extra, remember } = readBody(request)
  const address = clientAddress(request)
  trail.user = username
  const leaving = leavingOf(reply.raw).signal
  const attempt = await guard(request, username, leaving)
  const asked = { requestId: request.id, trail, request: consoleRequest(request) }
  const signingIn = { username, password, extra, address, ...asked }
  const vouched = await mustVouch(sources, signingIn, attempt, { log: request.log, sourceFaults })
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
  recordSignedIn(request, opened)
  const answer = gateway.answers.login
  if (answer !== undefined) {
    const value = answer.render(opened)
    return sendAnswer(reply, envelope.success(value, undefined, answer.placement))
  }
  const authority = authorityOf(opened.session.identity)
  // The kind that the console sent, such as with a password or by a text message.
  const { type } = request.body as Record<string, unknown>
  const kind = typeof type === 'string' ? type.slice(0, 64) : 'account'
  return envelope.login({ type: kind, authority })
}

/** @throws GatewayError `request.malformed` */
function readBody({ body, validationError, server }: FastifyRequest) {
  const { config, tokenNames } = server.gateway
  const { fields } = config.gateway.login
  if (validationError !== undefined) {
    throw malformed(
      `Sign-in needs a JSON object with "${fields.username}", a text of 1 to 255 characters, and ` +
        `"${fields.password}", one of 1 to 1024; "${fields.remember}" is true or false.`
    )
  }
  const {
    [fields.username]: username,
    [fields.password]: password,
    [fields.remember]: remember,
    ...others
  } = body as Record<string, unknown>
  const { cipher } = fields
  const text = password as string
  return {
    username: username as string,
    password: cipher === undefined ? text : decryptPassword(text, cipher),
    remember: remember === true,
    // Back-ends read a member of a form as they read the query parameter of its name.
    extra: Object.fromEntries(
      Object.entries(others).filter(([name]) => tokenNames.query?.isToken(name) !== true)
    )
  }
}
