/**
 * Cookie ↔ session on the request: @fastify/session reads and sets the cookie, `Sessions` keeps
 * the session.
 */
import { callbackify } from 'node:util'
import { Signer } from '@fastify/cookie'
import fastifySession, { type SessionStore as PluginStore } from '@fastify/session'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  Session as PluginSession
} from 'fastify'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { GatewayError } from '../../errors/errors.ts'
import { type EndReason, publicId, type Session } from '../../session/record.ts'
import type { Evaluation, Live } from '../../session/evaluate.ts'
import type { Trail } from '../../observability/trail.ts'
import type { NewSession, Sessions } from '../../session/session.ts'
import { clientAddress } from './address.ts'
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
 * Loads the session of each request of `scope`, for endpoints that neither open nor close one:
 * nothing is hashed, compared or set on the way out. A store that cannot answer makes it 503, never
 * 401.
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
    const live = sessions.getCachedByKey(key)
    // Use sets the idle end; other requests may tell of it, so it must be that of the store.
    if (live !== undefined && (!sessions.mayBeLater(live) || isUse(request))) {
      request.live = live
      trail.sessionFrom = 'cache'
      return done()
    }
    trail.sessionAt = performance.now()
    sessions.getByKey(key).then(
      lookup => {
        const ended = 'ended' in lookup ? lookup.ended : undefined
        endLookup(trail, 'live' in lookup ? 'store' : 'none', ended)
        if ('live' in lookup) request.live = lookup.live
        else {
          request.ended = ended
          request.endedSession = publicId(key)
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

/**
 * The same for endpoints that open and close sessions: there the plugin gives the browser its
 * cookie.
 */
export async function addSessions(scope: FastifyInstance): Promise<void> {
  const { sessions, cookie, secrets } = scope.gateway
  const signer = new Signer([...secrets])
  scope.addHook('onRequest', soleSession(cookie))
  scope.addHook('onRequest', function beforeSession({ trail, cookies }, _reply, done) {
    trail.sessionAt = performance.now()
    // The plugin would clear a cookie that an older secret signed.
    const { renew, value } = signer.unsign(cookies[cookie.name] ?? '')
    if (renew && value !== null) cookies[cookie.name] = signer.sign(value)
    done()
  })
  await scope.register(fastifySession, {
    store: storeFor(sessions),
    // Newest first: it signs. A cookie that one of them signed is valid.
    secret: [...secrets],
    cookieName: cookie.name,
    cookie: cookie.options as never,
    rolling: false,
    saveUninitialized: false
  })
  scope.addHook('onRequest', function afterSession(request: Request, _reply, done) {
    // The plugin asks for no session whose cookie is missing or forged.
    const { live, ended } = request.session ?? {}
    if (live !== undefined) endLookup(request.trail, 'store')
    else if (ended !== undefined) endLookup(request.trail, 'none', ended)
    done()
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
export function setSession({ trail, server }: FastifyRequest, session: Session): void {
  trail.user = session.identity.username
  trail.userId = session.identity.id
  trail.session = session.id
  trail.sessionOpenedAt = server.gateway.sessions.toWall(session.createdAt)
  trail.source = session.source
}

type Request = Omit<FastifyRequest, 'session'> & {
  session: FastifyRequest['session'] | null | undefined
}

/** The live session of a request as the store has it, or undefined. */
export function liveOf(request: FastifyRequest): Live | undefined {
  return request.live ?? (request as Request).session?.live
}

/** The live session of a request, or undefined. */
export function liveSession(request: FastifyRequest): Session | undefined {
  return liveOf(request)?.session
}

/**
 * Opens a session under a new id; the browser's former one is closed.
 * @throws StoreUnavailable; GatewayError `login.too-many`
 */
export async function openSession(request: FastifyRequest, opening: NewSession): Promise<Session> {
  const { sessions, cookie } = request.server.gateway
  try {
    const replaced = liveSession(request)
    if (replaced !== undefined) {
      const { id: requestId } = request
      const address = clientAddress(request)
      const revoker = { user: replaced, by: 'sign-in', address, requestId } as const
      await sessions.close(request.session.sessionId, 'replaced', { revoker })
    }
    if (request.cookies[cookie.name] !== undefined) await request.session.regenerate()
    request.session.opening = opening
    await request.session.save()
  } catch (error) {
    detachSession(request)
    throw error
  }
  // As if the browser had sent it: else the plugin clears the cookie before it sets it.
  request.cookies[cookie.name] = request.session.encryptedSessionId
  const session = liveSession(request)
  if (session === undefined) throw new GatewayError('gateway.fault')
  if (opening.remembered) {
    request.session.cookie.expires = new Date(sessions.toWall(session.absoluteEnd))
  }
  return session
}

/** Else the plugin would save again, or clear a cookie whose session may be live. */
function detachSession(request: FastifyRequest): void {
  request.session = null as never
}

/** Closes the session that a request has just opened. @throws StoreUnavailable */
export async function abandonSession(request: FastifyRequest): Promise<void> {
  const { sessionId } = request.session
  detachSession(request)
  await request.server.gateway.sessions.close(sessionId, 'revoked')
}

/**
 * Closes the session of a request, if it has one, and clears its cookie.
 * @throws StoreUnavailable; the cookie is kept then, since the session may live on
 */
export async function closeSession(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const session = liveSession(request)
  if (session !== undefined) setSession(request, session)
  // A sign-out that was 503 may have ended the session at the primary alone: the replicas must
  // confirm it still.
  const wasClosed = (request as Request).session?.ended === 'revoked'
  if (session !== undefined || wasClosed) await request.session.destroy()
  else request.session = null as never
  clearSessionCookie(reply)
}

/** The plugin itself does not clear the browser's cookie. */
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
export function sessionError(request: FastifyRequest): GatewayError {
  const ended = request.ended ?? (request as Request).session?.ended
  return new GatewayError(ended === undefined ? 'session.none' : `session.${ended}`)
}

/** @throws GatewayError of a request without a live session */
export function mustLive(request: FastifyRequest): Live {
  const live = liveOf(request)
  if (live === undefined) throw sessionError(request)
  return live
}

/** The session that a store has just read. @throws GatewayError where it is none any more */
export function liveIn(evaluation: Evaluation): Live {
  if ('live' in evaluation) return evaluation.live
  throw new GatewayError(`session.${evaluation.ended}`)
}

/**
 * Our sessions as the plugin's store. It never gets "nothing": the plugin would then clear a
 * cookie that another tab has just received.
 */
function storeFor(sessions: Sessions): PluginStore {
  return {
    get: callbackify(sessions.get) as never,
    set: callbackify(async (secretId: string, data: PluginSession) => {
      const { opening } = data
      if (opening === undefined) return
      data.live = await sessions.open(secretId, opening)
      delete data.opening
      delete data.ended
    }),
    destroy: callbackify(async (secretId: string) => {
      await sessions.close(secretId, 'revoked', { cause: 'signed-out' })
    })
  }
}
