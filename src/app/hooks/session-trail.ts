/** The members of a request's trail that describe its session. */
import type { FastifyRequest } from 'fastify'
import type { Trail } from '../../observability/trail.ts'
import type { Session } from '../../session/record.ts'

/** Writes whose session it is, or was. */
export function setSession(trail: Trail, session: Session): void {
  trail.user = session.identity.username
  trail.userId = session.identity.id
  trail.session = session.id
  trail.sessionOpenedAt = session.createdAt
  trail.source = session.source
}

/** A hook before the plugin asks the store for the session. */
export function beginLookup({ trail }: FastifyRequest, _reply: unknown, done: () => void): void {
  trail.sessionAt = performance.now()
  done()
}

/** A hook after it. The plugin asks for no session whose cookie is missing or forged. */
export function endLookup(request: FastifyRequest, _reply: unknown, done: () => void): void {
  const { trail } = request
  const session = request.session as FastifyRequest['session'] | null | undefined
  const isLive = session?.plugin !== undefined
  if (isLive || session?.ended !== undefined) {
    trail.sessionMs = performance.now() - trail.sessionAt
    trail.sessionFrom = isLive ? 'store' : 'none'
    trail.sessionEnded = session.ended
  }
  done()
}
