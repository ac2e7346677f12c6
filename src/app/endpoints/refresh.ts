/**
 * `POST` refresh: tells the console that its session lives on, by the session's cookie alone. The
 * token that the console sends along is not read.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { timeLeft } from '../../session/describe.ts'
import { liveIn } from '../../session/store.ts'
import { setTimeLeft } from '../hooks/guard.ts'
import { mustLive } from '../hooks/session.ts'
import { addOwn, sendAnswer } from './own.ts'

/** Bytes of a request: more than any token that a console may send. */
const maxBody = 16 * 1024

/** @param scope ignores bodies */
export function addRefresh(scope: FastifyInstance): void {
  const { config, sessions, answers, envelope } = scope.gateway
  const answer = answers.refresh

  async function refresh(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const live = liveIn(await sessions.reread(mustLive(request)))
    const times = sessions.times()
    if (config.gateway.session.headers) setTimeLeft(reply, live, times.now)
    if (answer === undefined) return envelope.success(timeLeft(live, times.now))
    const value = answer.render({ ...live, ...times })
    refuseLeak(value, live.session.credential, 'endpoints.refresh.answer')
    return sendAnswer(reply, answer, envelope.success(value, undefined, answer.placement))
  }
  addOwn(scope, 'refresh', {
    bodyLimit: maxBody,
    config: { touch: false, maxBody },
    handler: refresh
  })
}
