/**
 * Cookie ↔ session on the request: one reader for all endpoints. @fastify/session gives a browser
 * the cookie of a session that a sign-in opens.
 */
import { callbackify } from 'node:util'
import fastifySession, { type SessionStore as PluginStore } from '@fastify/session'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Trail } from '../../observability/trail.ts'
import type { Sessions } from '../../session/sessions.ts'
import {
  createSecretId,
  type EndReason,
  type Live,
  type NewSession,
  publicId,
  type Session,
  signedInOf
} from '../../session/types.ts'
import { createSessionCookieReader, soleSession } from './session-cookie.ts'

type CookieConfig = GatewayConfig['session']['cookie']

export interface SessionCookie {
  readonly name: string
  readonly options: {
    path: string
    secure: boolean
    httpOnly: boolean
    sameSite: 'strict' | 'lax' | 'none'
    domain: null
    partitioned: boolean
  }
}

/** `__Host-` binds the cookie to this very host (RFC 6265bis §4.1.3.2); it needs Secure. */
export function sessionCookie({ name, secure, sameSite }: CookieConfig): SessionCookie {
  return {
    name: secure ? `__Host-${name}` : name,
    options: {
      path: '/',
      secure,
      httpOnly: true,
      sameSite,
      domain: null,
      partitioned: sameSite === 'none'
    }
  }
}

const isUse = ({ routeConfig }: FastifyRequest) => routeConfig.touch !== false

/**
 * Loads the session of each request of `scope`. A store that cannot answer makes it 503, never 401.
 */
export function addSessionReader(scope: FastifyInstance): void {
  const { sessions, cookie, secrets } = scope.gateway
  const readCookie = createSessionCookieReader({ name: cookie.name, secrets })
  scope.addHook('onRequest', soleSession(cookie))
  scope.addHook('onRequest', function readSession(request, _reply, done) {
    const { cookie: header } = request.raw.headers
    const key = header === undefined ? undefined : readCookie(header)
    if (key === undefined) return done()
    const { trail } = request
    const live = sessions.cached(key)
    // Use sets the idle end; other requests may tell of it, so it must be that of the store.
    if (live !== undefined && (!sessions.mayBeLater(live) || isUse(request))) {
      request.live = live
      trail.sessionFrom = 'cache'
      return done()
    }
    trail.sessionAt = performance.now()
    sessions.read(key).then(
      found => {
        const ended = 'ended' in found ? found.ended : undefined
        endLookup(trail, 'live' in found ? 'store' : 'none', ended)
        if ('live' in found) request.live = found.live
        else {
          request.ended = ended
          request.endedSession = publicId(key)
          request.endedKey = key
        }
        done()
      },
      (error: Error) => {
        endLookup(trail)
        done(error)
      }
    )
  })
}

/** The same for a scope that opens sessions: there the plugin sets the cookie. */
export async function addSessions(scope: FastifyInstance): Promise<void> {
  const { sessions, cookie, secrets } = scope.gateway
  addSessionReader(scope)
  scope.addHook('onRequest', function hideCookie({ cookies }, _reply, done) {
    // The plugin would look its session up, and clear the cookie of one that has ended.
    delete cookies[cookie.name]
    done()
  })
  await scope.register(fastifySession, {
    store: storeFor(sessions),
    idGenerator: idFor as never,
    // Newest first: it signs. A cookie that one of them signed is valid.
    secret: [...secrets],
    cookieName: cookie.name,
    cookie: cookie.options as never,
    rolling: false,
    saveUninitialized: false
  })
  scope.addHook('onSend', function sessionFirst(_request, reply, _payload, done) {
    // Simple clients read only one cookie.
    const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
    const rank = (text: string) => (text.startsWith(`${cookie.name}=`) ? 0 : 1)
    reply.removeHeader('set-cookie')
    reply.header(
      'set-cookie',
      cookies.toSorted((one, other) => rank(one) - rank(other))
    )
    done()
  })
}

/** @param from undefined where the store did not answer */
function endLookup(trail: Trail, from?: 'store' | 'none', ended?: EndReason): void {
  trail.sessionMs = performance.now() - trail.sessionAt
  trail.sessionFrom = from
  trail.sessionEnded = ended
}

/** Writes into the trail of a request whose session it is, or was. */
export function setSession({ trail }: FastifyRequest, session: Session): void {
  trail.user = session.identity.username
  trail.userId = session.identity.id
  trail.session = session.id
  trail.sessionOpenedAt = session.createdAt
  trail.source = session.source
}

/** A session to be opened, which the plugin's store finds in the plugin's session. */
interface Opening {
  readonly session: NewSession
  /** The browser's session until now, which the new one replaces. */
  readonly former: Live | undefined
  readonly requestId: string
  opened?: Live
}

/**
 * Opens a session under a new id. The browser's former one ends with that, and only then.
 * @throws StoreUnavailable; GatewayError `login.too-many`, `login.blocked-by-operator`
 */
export async function openSession(request: FastifyRequest, session: NewSession): Promise<Live> {
  const { sessions, cookie } = request.server.gateway
  const opening: Opening = { session, former: request.live, requestId: request.id }
  try {
    Object.assign(request.session, { opening })
    await request.session.regenerate()
    Object.assign(request.session, { opening })
    await request.session.save()
  } catch (error) {
    detachSession(request)
    throw error
  }
  const { opened } = opening
  if (opened === undefined) throw new GatewayError('gateway.fault')
  request.live = opened
  if (session.remembered) {
    request.session.cookie.expires = new Date(opened.absoluteEnd + sessions.times().aheadMs)
  }
  // As if the browser had sent it: else the plugin clears the cookie before it sets it.
  request.cookies[cookie.name] = request.session.encryptedSessionId
  return opened
}

function idFor({ session }: { readonly session?: { opening?: Opening } | null }): string {
  const opening = session?.opening
  return opening === undefined ? '' : createSecretId(signedInOf(opening.session))
}

/** Ours as the plugin's store: it opens sessions, and nothing else. */
function storeFor(sessions: Sessions): PluginStore {
  return {
    get: (_secretId, done) => done(null, null),
    set: callbackify(async (secretId: string, { opening }: { opening?: Opening }) => {
      if (opening === undefined || opening.opened !== undefined) return
      const { session, former, requestId } = opening
      opening.opened = await sessions.open(secretId, session, former, requestId)
    }) as never,
    destroy: (_secretId, done) => done()
  }
}

/** Else the plugin would save again. */
function detachSession(request: FastifyRequest): void {
  request.session = null as never
}

/** Ends the session that a request has just opened. @throws StoreUnavailable */
export async function abandonSession(request: FastifyRequest, opened: Live): Promise<void> {
  detachSession(request)
  await request.server.gateway.sessions.end(opened, 'revoked')
}

/**
 * Ends the session of a request, if it has one, and clears its cookie.
 * @throws StoreUnavailable; the cookie is kept then, since the session may live on
 */
export async function closeSession(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { live } = request
  const { sessions } = request.server.gateway
  if (live !== undefined) {
    setSession(request, live.session)
    await sessions.end(live, 'revoked', { cause: 'signed-out' })
  } else if (request.ended === 'unknown' && request.endedKey !== undefined) {
    // A Redis that has just forgotten it may give its place to one that has not.
    await sessions.store.end(undefined, [request.endedKey], 'revoked')
  }
  clearSessionCookie(reply)
}

/** Clears the browser's cookie. */
export function clearSessionCookie(reply: FastifyReply): void {
  const { cookie } = reply.server.gateway
  reply.clearCookie(cookie.name, cookie.options as never)
}

/** The cookies in which consoles keep a token of their own. */
export function expireTokenCookies(reply: FastifyReply): void {
  const { tokenCookies } = reply.server.gateway.config.gateway.envelope
  for (const name of tokenCookies) reply.clearCookie(name, { path: '/' })
}

/** The error of a request without a live session. */
export function sessionError({ ended }: FastifyRequest): GatewayError {
  return new GatewayError(ended === undefined ? 'session.none' : `session.${ended}`)
}

/** @throws GatewayError of a request without a live session */
export function mustLive(request: FastifyRequest): Live {
  const { live } = request
  if (live === undefined) throw sessionError(request)
  return live
}
