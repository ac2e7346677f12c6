/** The operators' desk: sessions of a user, and closing them. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { addDeskRules } from '../hooks/desk.ts'
import { describeSession } from '../session/describe.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Inspected } from '../session/lists.ts'
import type { Sessions } from '../session/session.ts'

interface Options {
  readonly sessions: Sessions
  /** The names of the credential sources. */
  readonly sources: readonly string[]
  readonly log: { readonly info: (fields: object, message: string) => void }
}

export function addOpsSessions (ops: FastifyInstance, { sessions, sources, log }: Options): void {
  const keysOf = (id: string) => sources.map(source => identityKey({ source, identity: { id } }))

  ops.register(async scope => {
    addDeskRules(scope)

    scope.get('/sessions', async request => {
      const { user } = request.query as { user?: unknown }
      if (typeof user !== 'string' || user === '') throw new GatewayError('request.malformed', { message: 'Say whose: /sessions?user=ID' })
      const inspected = await Promise.all(keysOf(user).map(async key => sessions.inspect(key)))
      const now = sessions.now()
      return {
        user,
        sessions: inspected.flatMap(({ listed }) => listed).map(each => describeSession(each, now)),
        unreadable: unreadableOf(inspected)
      }
    })

    scope.post('/sessions/close', async request => {
      const { user, id, everyone } = (request.body ?? {}) as { user?: unknown, id?: unknown, everyone?: unknown }
      if (everyone === true && user === undefined) {
        await sessions.closeAll()
        log.info({ event: 'sessions.closed', by: 'operator', everyone: true }, 'all sessions closed')
        return { closed: 'everyone' }
      }
      if (typeof user !== 'string' || user === '' || (id !== undefined && typeof id !== 'string')) throw new GatewayError('request.malformed', { message: 'Say which: {"user": "ID"}, {"user": "ID", "id": "SESSION"} or {"everyone": true}.' })
      const which = id === undefined ? {} : { only: id }
      const inspected = await Promise.all(keysOf(user).map(async key => sessions.inspect(key)))
      const unreadable = unreadableOf(inspected)
      const counts = await Promise.all(keysOf(user).map(async key => sessions.closeOf(key, which)))
      const closed = counts.reduce((sum, count) => sum + count, 0)
      log.info({ event: 'sessions.closed', by: 'operator', user, closed, unreadable, ...(id !== undefined && { session: id }) }, 'sessions closed')
      return { closed, unreadable }
    })
  })
}

const unreadableOf = (inspected: readonly Inspected[]) => {
  return inspected.reduce((sum, { unreadable }) => sum + unreadable, 0)
}
