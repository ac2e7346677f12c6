/** Checks a route's access, marks the session as used, and sends its remaining time. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { secondsLeft } from '../../session/describe.ts'
import type { Sessions } from '../../session/session.ts'
import { liveOf, sessionError, setLiveSession } from './session.ts'
import { gate } from './gate.ts'

interface Options {
  readonly sessions: Sessions
  /** Whether responses have headers with the session's remaining time. */
  readonly sendsTimeLeft: boolean
}

/**
 * A hook that lets requests pass by the route's `access`, and marks their session as used unless
 * the route's `touch` is false.
 */
export function createGuard({ sessions, sendsTimeLeft }: Options) {
  function guard(
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void
  ): void {
    const { access = 'session', touch = true, credentialFrom } = request.routeConfig
    if (access === 'public') return done()
    const live = liveOf(request)
    if (live === undefined) return done(sessionError(request))
    if (
      access !== 'session' &&
      !live.session.identity.roles.some(role => access.roles.includes(role))
    ) {
      request.trail.needsRoles = access.roles
      return done(new GatewayError('route.forbidden'))
    }
    if (credentialFrom !== undefined && live.session.source !== credentialFrom) {
      return done(new GatewayError('route.credential'))
    }
    const idleEnd = touch ? sessions.use(live) : live.idleEnd
    if (idleEnd !== live.idleEnd) setLiveSession(request, { ...live, idleEnd })
    if (sendsTimeLeft) {
      const { absoluteEnd } = live.session
      setTimeLeft(reply, { idleEnd, absoluteEnd, now: sessions.now() })
    }
    done()
  }
  return gate('access', guard)
}

interface TimeLeft {
  readonly idleEnd: number
  readonly absoluteEnd: number
  /** By the clock of the sessions. */
  readonly now: number
}

export function setTimeLeft(reply: FastifyReply, { idleEnd, absoluteEnd, now }: TimeLeft): void {
  reply
    .header('x-session-idle-in', secondsLeft(Math.min(idleEnd, absoluteEnd), now))
    .header('x-session-absolute-in', secondsLeft(absoluteEnd, now))
}
