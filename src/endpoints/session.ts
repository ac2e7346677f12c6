/** The session itself: what is left of it, extending it, and the user's own list of sessions. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Envelope } from '../envelope.ts'
import { GatewayError } from '../errors.ts'
import { tellTimeLeft } from '../hooks/guard.ts'
import { clearSessionCookie, liveOf, type SessionCookie, sessionError } from '../hooks/session.ts'
import { describeSession, secondsLeft } from '../session/describe.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Live } from '../session/judge.ts'
import type { Sessions } from '../session/session.ts'

interface Options {
  /** Each with its aliases. */
  readonly paths: { readonly session: readonly string[], readonly extend: readonly string[], readonly list: readonly string[], readonly close: readonly string[] }
  readonly sessions: Sessions
  readonly cookie: SessionCookie
  readonly envelope: Envelope
}

export function addSession (scope: FastifyInstance, { paths, sessions, cookie, envelope }: Options): void {
  const config = { route: 'session', access: 'session' as const, touch: false }
  for (const url of paths.session) scope.route({ method: 'GET', url, config, handler: show })
  for (const url of paths.list) scope.route({ method: 'GET', url, config, handler: async request => list(mustLive(request)) })
  scope.register(async inner => {
    for (const url of paths.extend) inner.route({ method: 'POST', url, config, handler: extend })
    for (const url of paths.close) inner.route({ method: 'POST', url, config, handler: close })
  })

  async function show (request: FastifyRequest): Promise<unknown> {
    return envelope.success(timeLeft(mustLive(request), sessions.now()))
  }

  async function extend (request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const live = mustLive(request)
    const idleEnd = await sessions.extend(live)
    tellTimeLeft(reply, { idleEnd, absoluteEnd: live.session.absoluteEnd, now: sessions.now() })
    return envelope.success(timeLeft({ ...live, idleEnd }, sessions.now()))
  }

  async function list ({ session }: Live): Promise<unknown> {
    const listed = await sessions.list(identityKey(session))
    const now = sessions.now()
    const described = listed.map(each => ({
      ...describeSession(each, now),
      current: each.session.id === session.id
    }))
    return envelope.success(described, { total: listed.length })
  }

  async function close (request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { session } = mustLive(request)
    const { id, others, all } = (request.body ?? {}) as { id?: unknown, others?: unknown, all?: unknown }
    const which = typeof id === 'string' && id !== '' ? { only: id } : others === true ? { except: session.id } : all === true ? {} : undefined
    if (which === undefined) throw new GatewayError('request.malformed', { message: 'Say which: {"id": "…"}, {"others": true} or {"all": true}.' })
    const closed = await sessions.closeOf(identityKey(session), which)
    request.log.info({ event: 'sessions.closed', user: session.identity.username, by: 'user', closed, ...which }, 'sessions closed')
    if (which.except === undefined && (which.only === undefined || which.only === session.id)) clearSessionCookie(reply, cookie)
    return envelope.success({ closed })
  }
}

function mustLive (request: FastifyRequest): Live {
  const live = liveOf(request)
  if (live === undefined) throw sessionError(request)
  return live
}

function timeLeft ({ session: { id, identity, absoluteEnd }, idleEnd }: Live, now: number) {
  return {
    id,
    user: { id: identity.id, username: identity.username, name: identity.name },
    roles: identity.roles,
    idleIn: secondsLeft(Math.min(idleEnd, absoluteEnd), now),
    absoluteIn: secondsLeft(absoluteEnd, now)
  }
}
