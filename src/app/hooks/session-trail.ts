/** The members of a request's trail that describe its session. */
import type { FastifyRequest } from 'fastify'
import type { Trail } from '../../observability/trail.ts'
import type { EndReason, Session } from '../../session/record.ts'

/** Writes whose session it is, or was. */
export function setSession({ trail, server }: FastifyRequest, session: Session): void {
  trail.user = session.identity.username
  trail.userId = session.identity.id
  trail.session = session.id
  trail.sessionOpenedAt = server.gateway.sessions.toWall(session.createdAt)
  trail.source = session.source
}

export function beginLookup(trail: Trail): void {
  trail.sessionAt = performance.now()
}

/** @param from undefined where the store did not answer */
export function endLookup(trail: Trail, from?: 'store' | 'none', ended?: EndReason): void {
  trail.sessionMs = performance.now() - trail.sessionAt
  trail.sessionFrom = from
  trail.sessionEnded = ended
}
