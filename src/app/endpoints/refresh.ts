/**
 * `POST` refresh: tells the console that its session lives on, by the session's cookie alone. The
 * token that the console sends along is not read.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { RefreshPolicy } from '../../session/refresh.ts'
import type { Sessions } from '../../session/session.ts'
import type { Answer } from '../../shaping/answer.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { setTimeLeft } from '../hooks/guard.ts'
import { liveIn, liveOf, sessionError } from '../hooks/session.ts'
import { ignoreBodies } from './ignored-bodies.ts'
import { sendAnswer } from './send-answer.ts'
import { timeLeft } from './session.ts'

interface Options {
  /** The path and its aliases; none where config has no such endpoint. */
  readonly paths: readonly string[]
  readonly policy: RefreshPolicy
  readonly sessions: Sessions
  /** The time left without it. */
  readonly answer: Answer | undefined
  readonly envelope: Envelope
  /** Whether responses have headers with the session's remaining time. */
  readonly sendsTimeLeft: boolean
}

/** Bytes of a request: more than any token that a console may send. */
const maxBody = 16 * 1024

export function addRefresh(scope: FastifyInstance, { paths, ...options }: Options): void {
  const { name, methods } = ownRoutes.refresh
  scope.register(async inner => {
    ignoreBodies(inner)
    for (const url of paths) {
      inner.route({
        method: [...methods],
        url,
        bodyLimit: maxBody,
        config: { route: name, access: 'session', touch: false, maxBody },
        handler: (request, reply) => refresh(options, request, reply)
      })
    }
  })
}

async function refresh(
  { policy, sessions, answer, envelope, sendsTimeLeft }: Omit<Options, 'paths'>,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<unknown> {
  const before = liveOf(request)
  if (before === undefined) throw sessionError(request)
  const live = liveIn(await sessions.refresh(before, policy))
  const { session, idleEnd } = live
  const times = sessions.times()
  const { now } = times
  if (sendsTimeLeft) setTimeLeft(reply, { idleEnd, absoluteEnd: session.absoluteEnd, now })
  if (answer === undefined) return envelope.success(timeLeft(live, now))
  const value = answer.render({ session, idleEnd, ...times })
  refuseLeak(value, session.credential, 'endpoints.refresh.answer')
  return sendAnswer(reply, answer, envelope.success(value, undefined, answer.placement))
}
