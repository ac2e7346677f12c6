/** Checks a route's access, marks the session as used, and sends its remaining time. */
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { secondsLeft } from '../../session/describe.ts'
import type { Live, Session } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import type { Access, RequestHook } from './context.ts'
import { sessionError } from './session.ts'

/**
 * A hook that lets requests pass by the route's `access`, and marks their session as used unless
 * the route's `touch` is false.
 */
export function createGuard({ sessions }: Gateway): RequestHook {
  return function guard(request, reply, done) {
    const { access = 'session', touch = true, credentialFrom } = request.routeConfig
    if (access === 'public') return done()
    const live = request.live
    if (live === undefined) return done(sessionError(request))
    if (typeof access !== 'string' && !mayUse(access, live.session)) {
      request.trail.needsRoles = access.roles
      return done(new GatewayError('route.forbidden'))
    }
    if (credentialFrom !== undefined && live.session.source !== credentialFrom) {
      return done(new GatewayError('route.credential'))
    }
    // Lists tell of the last use of a key, whatever it was for.
    if (touch || live.session.key !== undefined) sessions.use(live)
    setTimeLeft(reply, live, sessions.now())
    done()
  }
}

/** Whether the user of a session may call a route. */
export function mayUse(access: Access, { identity: { roles } }: Session): boolean {
  return typeof access === 'string' || access.roles.some(role => roles.includes(role))
}

/** @param now by the clock of the sessions */
export function setTimeLeft(
  reply: FastifyReply,
  { absoluteEnd, idleEnd }: Live,
  now: number
): void {
  reply
    .header('x-session-idle-in', secondsLeft(Math.min(idleEnd, absoluteEnd), now))
    .header('x-session-absolute-in', secondsLeft(absoluteEnd, now))
}
