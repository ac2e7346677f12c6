/**
 * The session itself: what is left of it, refreshing and extending it, and the user's own list of
 * sessions.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { closeBody } from '../../config/schema/request-bodies.ts'
import { GatewayError } from '../../errors/errors.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { describeSession, timeLeft } from '../../session/describe.ts'
import { liveIn } from '../../session/store.ts'
import { signedInOf } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { setTimeLeft } from '../hooks/guard.ts'
import { clearSessionCookie, mustLive } from '../hooks/session.ts'
import { addOwn, sendAnswer } from './own.ts'

/** Bytes: far more than a request needs. */
const maxBody = 4096
/** More than any token that a console may send. */
const maxRefreshBody = 16 * 1024

export function addSession(scope: FastifyInstance): void {
  const { sessions, envelope } = scope.gateway
  const config = { touch: false, maxBody }
  addOwn(scope, 'session', { config, handler: show })
  addOwn(scope, 'list', { config, handler: list })
  addOwn(scope, 'extend', { config, handler: extend })
  const schema = { body: closeBody }
  addOwn(scope, 'close', { config, schema, attachValidation: true, handler: close })

  async function show(request: FastifyRequest): Promise<unknown> {
    return envelope.success(timeLeft(mustLive(request), sessions.now()))
  }

  async function extend(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const live = liveIn(await sessions.extend(mustLive(request)))
    setTimeLeft(reply, live, sessions.now())
    return envelope.success(timeLeft(live, sessions.now()))
  }

  async function list(request: FastifyRequest): Promise<unknown> {
    const { session } = mustLive(request)
    const listed = await sessions.list(signedInOf(session))
    const times = sessions.times()
    const described = listed.map(each => ({
      ...describeSession(each, times),
      current: each.session.id === session.id
    }))
    return envelope.success(described, { total: listed.length })
  }

  async function close(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { session } = mustLive(request)
    if (request.validationError !== undefined) {
      throw new GatewayError('request.malformed', {
        message: 'Say which: {"id": "…"}, {"others": true} or {"all": true}.',
        cause: request.validationError
      })
    }
    const { id, others } = request.body as { readonly id?: unknown; readonly others?: unknown }
    const which = whichOf(id, others, session.id)
    const { closed } = await sessions.endOf(signedInOf(session), which, {
      by: 'user',
      address: clientAddress(request),
      requestId: request.id
    })
    const { id: userId, username: user } = session.identity
    const fields = { event: 'sessions.closed', user, userId, by: 'user', closed }
    request.log.info({ ...fields, ...loggedOf(which, closed) }, 'sessions closed')
    if (which.except === undefined && (which.only === undefined || which.only === session.id)) {
      clearSessionCookie(reply)
    }
    return envelope.success({ closed })
  }
}

interface Which {
  readonly only?: string
  readonly except?: string
}

function whichOf(id: unknown, others: unknown, currentId: string): Which {
  if (typeof id === 'string' && id !== '') return { only: id }
  return others === true ? { except: currentId } : {}
}

/** For the log: an id that matches no session may hold anything, so it is cut. */
function loggedOf(which: Which, closed: number): Which {
  return which.only === undefined || closed > 0 ? which : { only: `${which.only.slice(0, 8)}…` }
}

/**
 * `POST` refresh: tells the console that its session lives on, by the session's cookie alone. The
 * token that the console sends along is not read.
 * @param scope ignores bodies
 */
export function addRefresh(scope: FastifyInstance): void {
  const { sessions, answers, envelope } = scope.gateway
  const answer = answers.refresh
  addOwn(scope, 'refresh', {
    config: { touch: false, maxBody: maxRefreshBody },
    handler: async (request, reply) => {
      const live = liveIn(await sessions.read(mustLive(request).key))
      const times = sessions.times()
      setTimeLeft(reply, live, times.now)
      if (answer === undefined) return envelope.success(timeLeft(live, times.now))
      const value = answer.render({ ...live, ...times })
      refuseLeak(value, live.session.credential, 'endpoints.refresh.answer')
      return sendAnswer(reply, envelope.success(value, undefined, answer.placement))
    }
  })
}
