/** Cookie ↔ session on the request. @fastify/session sets the cookie that a sign-in opens. */
import fastifySession from '@fastify/session'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, malformed } from '../../errors/errors.ts'
import { keyIn } from '../../session/keys.ts'
import { OidcSource } from '../../login/oidc/source.ts'
import {
  createSecretId,
  type EndReason,
  type Live,
  type NewSession,
  type Opened,
  publicId,
  signedInOf
} from '../../session/types.ts'
import { wallTime } from '../../steady-clock.ts'
import { createAmbiguityCheck, signedOutCookie } from './session-cookie.ts'

const twoSessions = 'Two session cookies were sent. Clear the cookies of this site and sign in.'

/** A store that cannot answer makes a request 503, never 401. */
export function addSessionReader(scope: FastifyInstance): void {
  const { sessions, tokenIn, cookie, sessionKeyIn } = scope.gateway
  const isAmbiguous = createAmbiguityCheck(cookie.name)
  scope.addHook('onRequest', function readSession(request, _reply, done) {
    const { cookie: header, authorization } = request.raw.headers
    const tokenOf = tokenIn(authorization)
    // With a key for scripts no cookie counts.
    const ofScript = tokenOf === undefined ? keyIn(authorization) : undefined
    if (tokenOf !== undefined || ofScript !== undefined) {
      request.hasKey = true
      if (request.routeConfig.keys !== true) return done(new GatewayError('route.keys'))
    } else if (header !== undefined && isAmbiguous(header)) {
      return done(malformed(twoSessions))
    }
    if (tokenOf !== undefined) return void readToken(request, tokenOf).then(() => done(), done)
    const key = ofScript ?? (header === undefined ? undefined : sessionKeyIn(header))
    if (key === undefined || key === '') return done()
    const { trail } = request
    const live = sessions.cached(key)
    // Use sets the idle end; other requests may tell of it, so it must be that of the store.
    if (live !== undefined && (!sessions.mayBeLater(live) || request.routeConfig.touch !== false)) {
      setLive(request, live)
      trail.sessionFrom = 'cache'
      return done()
    }
    trail.sessionAt = performance.now()
    const lookUp = async () => {
      const found = await sessions.read(key)
      trail.sessionFrom = 'live' in found ? 'store' : 'none'
      if ('live' in found) setLive(request, found.live)
      else if (request.hasKey === undefined) setEnded(request, key, found.ended)
    }
    const end = (error?: Error) => {
      trail.sessionMs = performance.now() - trail.sessionAt
      done(error)
    }
    lookUp().then(() => end(), end)
  })
}

/** One that is invalid is refused by the guard, after limits. */
async function readToken(request: FastifyRequest, tokenOf: () => Promise<Live>): Promise<void> {
  try {
    setLive(request, await tokenOf())
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === 'key.invalid')) throw error
  }
}

/** The same for a scope that opens sessions: there the plugin sets the cookie. */
export async function addSessions(scope: FastifyInstance): Promise<void> {
  const { cookie, secrets } = scope.gateway
  addSessionReader(scope)
  await scope.register(fastifySession, {
    // It keeps nothing: `openSession` does.
    store: {
      get: (_id, done) => done(null, null),
      set: (_id, _session, done) => done(),
      destroy: (_id, done) => done()
    },
    // Without an id the plugin leaves the cookie as it is.
    idGenerator: (({ openedId = '' }: FastifyRequest) => openedId) as never,
    // Newest first: it signs. A cookie that one of them signed is valid.
    secret: [...secrets],
    cookieName: cookie.name,
    cookie: { ...cookie.options, domain: null } as never,
    rolling: false,
    saveUninitialized: false
  })
  scope.addHook('onSend', function sessionFirst(_request, reply, _payload, done) {
    // Simple clients read only one cookie.
    const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
    const isFirst = (text: string) => text.startsWith(`${cookie.name}=`)
    const sorted = [...cookies.filter(isFirst), ...cookies.filter(each => !isFirst(each))]
    reply.removeHeader('set-cookie').header('set-cookie', sorted)
    done()
  })
}

function setLive(request: FastifyRequest, live: Live): void {
  const { session } = live
  const { trail } = request
  request.live = live
  trail.user = session.identity.username
  trail.userId = session.identity.id
  trail.session = session.id
  trail.isSessionOver = false
  trail.sessionOpenedAt = session.createdAt
  trail.source = session.source
}

function setEnded(request: FastifyRequest, key: string, reason: EndReason): void {
  const { trail } = request
  request.ended = { key, reason }
  trail.session = publicId(key)
  trail.isSessionOver = true
  trail.sessionEnded = reason
}

/** The browser's former session ends with that. @throws StoreUnavailable; GatewayError `login.*` */
export async function openSession(request: FastifyRequest, session: NewSession): Promise<Opened> {
  const { sessions, cookie } = request.server.gateway
  const secretId = createSecretId(signedInOf(session))
  const opened = await sessions.open(secretId, session, request.live, request.id)
  setLive(request, opened)
  request.openedId = secretId
  await request.session.regenerate()
  await request.session.save()
  if (session.remembered) {
    request.session.cookie.expires = new Date(wallTime(opened.absoluteEnd))
  }
  // As if the browser had sent it: else the plugin clears the cookie before it sets it.
  request.cookies[cookie.name] = request.session.encryptedSessionId
  return opened
}

/** @throws StoreUnavailable; the cookie is kept then, since the session may live on */
export async function closeSession(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { live, ended } = request
  const { sessions } = request.server.gateway
  if (live !== undefined) await sessions.end(live, 'revoked')
  // A Redis that has just forgotten it may give its place to one that has not.
  if (ended?.reason === 'unknown') await sessions.store.end(undefined, [ended.key], 'revoked')
  clearSessionCookie(reply)
}

/** Clears the browser's cookie, at a sign-out. */
export function clearSessionCookie(reply: FastifyReply): void {
  const { cookie, sources } = reply.server.gateway
  const { name, options } = cookie
  reply.clearCookie(name, options)
  if (sources.some(each => each instanceof OidcSource)) askAgain(reply)
}

/** At the browser's next sign-in a provider asks for the password, though it knows the user. */
export function askAgain(reply: FastifyReply): void {
  const { options } = reply.server.gateway.cookie
  reply.setCookie(signedOutCookie, '1', { ...options, sameSite: 'lax', partitioned: false })
}

/** The cookies in which consoles keep a token of their own. */
export function expireTokenCookies(reply: FastifyReply): void {
  const { tokenCookies } = reply.server.gateway.config.gateway.envelope
  for (const name of tokenCookies) reply.clearCookie(name, { path: '/' })
}

export function sessionError({ ended, hasKey }: FastifyRequest): GatewayError {
  if (hasKey !== true) return new GatewayError(`session.${ended?.reason ?? 'none'}`)
  // RFC 6750 §3.1
  const headers = { 'www-authenticate': 'Bearer error="invalid_token"' }
  return new GatewayError('key.invalid', { headers })
}

export function mustLive(request: FastifyRequest): Live {
  if (request.live === undefined) throw sessionError(request)
  return request.live
}
