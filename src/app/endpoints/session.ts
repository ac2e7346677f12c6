/** The session itself: what is left of it, extending it, and the user's own list of sessions. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { closeBody } from '../../config/schema/request-bodies.ts'
import { GatewayError } from '../../errors/errors.ts'
import { describeSession, timeLeft } from '../../session/describe.ts'
import { liveIn } from '../../session/store.ts'
import { signedInOf } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { setTimeLeft } from '../hooks/guard.ts'
import { clearSessionCookie, mustLive } from '../hooks/session.ts'
import { addOwn } from './own.ts'

/** Bytes of a request that closes or extends sessions: far more than it needs. */
const maxBody = 4096

interface CloseBody {
  readonly id?: unknown
  readonly others?: unknown
}

export function addSession(scope: FastifyInstance): void {
  const { sessions, envelope } = scope.gateway
  const config = { touch: false }
  const bounded = { bodyLimit: maxBody, config: { ...config, maxBody } }
  addOwn(scope, 'session', { config, handler: show })
  addOwn(scope, 'list', { config, handler: list })
  addOwn(scope, 'extend', { ...bounded, handler: extend })
  const schema = { body: closeBody }
  addOwn(scope, 'close', { ...bounded, schema, attachValidation: true, handler: close })

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
    const { id, others } = request.body as CloseBody
    const which = whichOf(id, others, session.id)
    const { closed } = await sessions.endOf(signedInOf(session), which, {
      by: 'user',
      address: clientAddress(request),
      requestId: request.id
    })
    request.log.info(
      {
        event: 'sessions.closed',
        user: session.identity.username,
        userId: session.identity.id,
        by: 'user',
        closed,
        ...loggedOf(which, closed)
      },
      'sessions closed'
    )
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
