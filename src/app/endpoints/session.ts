/** The session: what is left of it, refresh, extension, end, the list, the check of proxies. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { closeBody } from '../../config/schema/own-endpoints.ts'
import { GatewayError, malformed } from '../../errors/errors.ts'
import { isRecord } from '../../json/values.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { safeMethods } from '../../observability/failures.ts'
import { identityHeaders } from '../../proxy/request-headers.ts'
import { describeSession, timeLeft } from '../../session/describe.ts'
import { liveIn } from '../../session/store.ts'
import { signedInOf } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { recordSignOut } from '../hooks/audit.ts'
import { setTimeLeft } from '../hooks/guard.ts'
import { requireOrigin } from '../hooks/same-origin.ts'
import { clearSessionCookie, closeSession, expireTokenCookies, mustLive } from '../hooks/session.ts'
import { addOwn, sendAnswer } from './own.ts'
import { createLogoutUrl } from './provider-logout.ts'

const maxBody = 4096
/** More than any token that a console may send. */
const maxRefreshBody = 16 * 1024

export function addSession(scope: FastifyInstance): void {
  const { sessions, envelope } = scope.gateway
  const config = { touch: false, maxBody }
  addOwn(scope, 'session', {
    config,
    handler: async request => envelope.success(timeLeft(mustLive(request)))
  })
  addOwn(scope, 'extend', {
    config,
    handler: async (request, reply) => {
      const live = liveIn(await sessions.extend(mustLive(request)))
      setTimeLeft(reply, live)
      return envelope.success(timeLeft(live))
    }
  })
  addOwn(scope, 'list', {
    config,
    handler: async request => {
      const { session } = mustLive(request)
      const listed = await sessions.list(signedInOf(session))
      const described = listed.map(each => ({
        ...describeSession(each),
        current: each.session.id === session.id
      }))
      return envelope.success(described, { total: listed.length })
    }
  })
  addOwn(scope, 'close', {
    config,
    schema: { body: closeBody },
    attachValidation: true,
    handler: close
  })
}

async function close(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { gateway } = request.server
  const { sessions, envelope } = gateway
  const { session } = mustLive(request)
  const { validationError, body } = request
  if (validationError !== undefined) {
    throw malformed('Say which: {"id": "…"}, {"others": true} or {"all": true}.', validationError)
  }
  const { id, others } = body as { readonly id?: unknown; readonly others?: unknown }
  const one = typeof id === 'string' && id !== '' ? id : undefined
  const except = one === undefined && others === true ? session.id : undefined
  const end = { by: 'user', address: clientAddress(request), requestId: request.id } as const
  const ended = await sessions.endOf(signedInOf(session), end, each =>
    one === undefined ? each !== except : each === one
  )
  signOutAtSource(gateway, ended.sessions, request)
  const { closed } = ended
  const { id: userId, username: user } = session.identity
  // An id that matches no session may hold anything.
  const only = closed === 0 ? one && `${one.slice(0, 8)}…` : one
  const fields = { event: 'sessions.closed', user, userId, by: 'user', closed, only, except }
  request.log.info(fields, 'sessions closed')
  if (except === undefined && (one ?? session.id) === session.id) clearSessionCookie(reply)
  return envelope.success({ closed })
}

/** `POST` refresh, by the session's cookie alone: the token that the console sends is not read. */
export function addRefresh(scope: FastifyInstance): void {
  const { sessions, answers, envelope } = scope.gateway
  const answer = answers.refresh
  addOwn(scope, 'refresh', {
    config: { touch: false, maxBody: maxRefreshBody },
    handler: async (request, reply) => {
      const live = liveIn(await sessions.read(mustLive(request).key))
      setTimeLeft(reply, live)
      if (answer === undefined) return envelope.success(timeLeft(live))
      const value = answer.render(live)
      refuseLeak(value, live.session, 'endpoints.refresh.answer')
      return sendAnswer(reply, envelope.success(value, undefined, answer.placement))
    }
  })
}

/** `GET` check, for proxies that ask first (`auth_request`, `forward_auth`): 204, 401, or 403. */
export function addCheck(scope: FastifyInstance): void {
  const { config } = scope.gateway
  const { identity, server } = config.gateway
  addOwn(scope, 'check', {
    config: { keys: config.routes.endpoints.check?.keys ?? false },
    handler: (request, reply) => {
      const { headers, trail, raw } = request
      // A proxy asks with GET, and names the method of the client's request in a header.
      const methods = [headers['x-forwarded-method'], headers['x-original-method']].flat()
      if (!methods.every((method = 'GET') => safeMethods.has(method.toUpperCase()))) {
        requireOrigin(request, server.origins)
      }
      const { session } = mustLive(request)
      // Any of those that the proxy asks for.
      const roles = new URL(raw.url ?? '', 'http://gateway').searchParams.getAll('role')
      if (roles.length > 0 && !roles.some(role => session.identity.roles.includes(role))) {
        trail.needsRoles = roles
        throw new GatewayError('route.forbidden')
      }
      return reply.code(204).headers(identityHeaders(session, identity)).send()
    }
  })
}

/** Sign-out: a success also without a session; 503 where the store cannot say that it is over. */
export function addLogout(scope: FastifyInstance): void {
  const { gateway } = scope
  const { config, answers, envelope } = gateway
  const answer = answers.logout
  const logoutUrlOf = createLogoutUrl(gateway)
  addOwn(scope, 'logout', {
    config: { access: 'public' },
    handler: async (request, reply) => {
      // A page of another origin must not sign out, by GET as well.
      requireOrigin(request, config.gateway.server.origins)
      const { live } = request
      // The back-end may have changed its cookies a moment ago.
      const session = live && gateway.sessions.credentials.withHeld(live).session
      await closeSession(request, reply)
      expireTokenCookies(reply)
      if (session !== undefined) {
        recordSignOut(request)
        const { id: userId, username: user } = session.identity
        const fields = { user, userId, session: session.id, address: clientAddress(request) }
        request.log.info({ event: 'logout', ...fields }, 'signed out')
        signOutAtSource(gateway, session, request)
      }
      const logoutUrl = logoutUrlOf(session)
      if (logoutUrl !== undefined && request.headers['sec-fetch-dest'] === 'document') {
        return reply.redirect(logoutUrl, 303)
      }
      const value = answer?.render() ?? {}
      const data = logoutUrl !== undefined && isRecord(value) ? { ...value, logoutUrl } : value
      return sendAnswer(reply, envelope.success(data, undefined, answer?.placement))
    }
  })
}
