/** The operators' desk: sessions of a user, and closing them. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { addDeskRules } from '../hooks/desk.ts'
import { describeSession } from '../session/describe.ts'
import type { Sessions } from '../session/session.ts'

interface Options {
  readonly sessions: Sessions
  readonly log: { readonly info: (fields: object, message: string) => void }
}

export function addOpsSessions (ops: FastifyInstance, { sessions, log }: Options): void {
  ops.register(async scope => {
    addDeskRules(scope)

    scope.get('/sessions', async request => {
      const { user } = request.query as { user?: unknown }
      if (typeof user !== 'string' || user === '') throw new GatewayError('request.malformed', { message: 'Say whose: /sessions?user=ID' })
      return { user, sessions: (await sessions.list(user)).map(describeSession) }
    })

    scope.post('/sessions/close', async request => {
      const { user, id, everyone } = (request.body ?? {}) as { user?: unknown, id?: unknown, everyone?: unknown }
      if (everyone === true && user === undefined) {
        await sessions.closeAll()
        log.info({ event: 'sessions.closed', by: 'operator', everyone: true }, 'all sessions closed')
        return { closed: 'everyone' }
      }
      if (typeof user !== 'string' || user === '' || (id !== undefined && typeof id !== 'string')) throw new GatewayError('request.malformed', { message: 'Say which: {"user": "ID"}, {"user": "ID", "id": "SESSION"} or {"everyone": true}.' })
      const closed = await sessions.closeOf(user, id === undefined ? {} : { only: id })
      log.info({ event: 'sessions.closed', by: 'operator', user, closed, ...(id !== undefined && { session: id }) }, 'sessions closed')
      return { closed }
    })
  })
}
