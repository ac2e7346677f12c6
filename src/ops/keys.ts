import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { clientAddress } from '../app/hooks/address.ts'
import { createKey, listKeys, revokeKey } from '../session/keys.ts'
import { secretOperator } from './operator.ts'
import { addRoute, type Desk } from './routes.ts'
import { count, forMs, like, list, object, optional, text, time } from './schemas.ts'

export type KeyJson = Static<typeof key>
export type CreatedKey = Static<typeof created>

const standardMs = 90 * 86_400_000
const name = like('^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$', 'At most 63 letters, digits, and . _ -')
const role = text('', { minLength: 1, maxLength: 255 })
const newKey = object({
  name,
  roles: optional(Type.Array(role, { maxItems: 100, description: 'None without it.' })),
  forMs: forMs('90 days')
})
const key = object({
  name: text(),
  roles: list(text()),
  createdBy: text('The operator.'),
  createdAt: time,
  expiresAt: time,
  lastUsedAt: optional(time)
})
const created = object({ key: text('It is shown this once.'), ...key.properties })

export function addKeyRoutes(ops: FastifyInstance, { sessions }: Desk): void {
  addRoute(ops, '/keys', 'Keys for scripts.', {
    answer: object({ keys: list(key) }),
    run: async () => ({ keys: await listKeys(sessions) })
  })
  addRoute(ops, '/keys/create', 'Creates a key for a script.', {
    kind: 'keys.create',
    takes: newKey,
    answer: created,
    secret: 'key',
    run: async ({ name: keyName, roles = [], forMs: ms = standardMs }, request) => {
      const { name: createdBy } = request.operator ?? secretOperator
      const terms = { createdBy, forMs: ms, address: clientAddress(request) }
      return await createKey(sessions, { name: keyName, roles, ...terms })
    }
  })
  addRoute(ops, '/keys/revoke', 'Ends a key at all replicas.', {
    kind: 'keys.revoke',
    takes: object({ name }),
    answer: object({ revoked: count }),
    run: async ({ name: keyName }) => ({ revoked: Number(await revokeKey(sessions, keyName)) })
  })
}
