/** Members of log lines that say why a request was refused or failed, and whose it was. */
import type { FastifyRequest } from 'fastify'
import { toHundredths } from '../../observability/request-record.ts'
import type { Trail, TrailAttempt } from '../../observability/trail.ts'
import { liveSession } from './session.ts'

type Facts = Readonly<Record<string, unknown>>

const none: Facts = {}

/** The user of a request, where known. A member without a value is not written. */
export function whoOf(request: FastifyRequest): Facts {
  const session = liveSession(request)
  if (session === undefined) {
    const { actor, endedSession } = request
    return { user: endedSession === undefined ? actor : undefined, endedSession }
  }
  const { identity, id } = session
  return { user: identity.username, userId: identity.id, session: id }
}

/** Why it failed: the limit, the calls to back-ends, the missing parts. */
export function reasonsOf(trail: Trail | undefined): Facts {
  if (trail === undefined) return none
  const { attempts, limit, missing } = trail
  if (attempts === undefined && limit === undefined && missing === undefined) return none
  const tells = attempts !== undefined && (attempts.length > 1 || attempts.some(hasFailed))
  return {
    limit,
    upstreamAddress: attempts?.at(-1)?.address,
    attempts: tells ? attempts.map(attemptFacts) : undefined,
    missing
  }
}

/** Of one part: the calls that were made for it. */
export function reasonsOfPart({ attempts }: Trail, part: string): Facts {
  const ofPart = attempts?.filter(attempt => attempt.part === part)
  return { upstreamAddress: ofPart?.at(-1)?.address, attempts: ofPart?.map(attemptFacts) }
}

function attemptFacts({ upstream, address, part, ms, status, failure, reason }: TrailAttempt) {
  return { upstream, address, part, ms: ms && toHundredths(ms), status, failure, reason }
}

/** Whether an ordinary line of the access log would hide something. */
export function isRemarkable({ status, isCut, missing, attempts }: Trail): boolean {
  return status >= 400 || isCut || missing !== undefined || attempts?.some(hasFailed) === true
}

function hasFailed({ failure }: TrailAttempt): boolean {
  return failure !== undefined
}
