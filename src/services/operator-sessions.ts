/** The sessions of operators: as those of consoles, with keys and a seal of their own. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { operatorSources } from '../config/schema/operators.ts'
import type { FileUsers } from '../login/file-users.ts'
import type { NewSession } from '../session/session.ts'
import type { Session } from '../session/record.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { createSeal } from '../session/seal.ts'
import { createSessions } from '../session/session.ts'
import type { Shared } from './shared.ts'

export interface OperatorSessions {
  /** @throws StoreUnavailable */
  readonly open: (secretId: string, opening: NewSession) => Promise<Session>
  /** The live session of a user who is an operator still. @throws StoreUnavailable */
  readonly find: (secretId: string) => Promise<Session | undefined>
  /** By the wall clock, in milliseconds since the epoch. */
  readonly endOf: (session: Session) => number
  /** @throws StoreUnavailable */
  readonly close: (secretId: string) => Promise<void>
  /** To be called when the users files changed. */
  readonly forgetReviews: () => void
  readonly release: () => Promise<void>
}

interface Options {
  readonly gateway: GatewayConfig
  readonly shared: Shared | undefined
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
}

const maxPerOperator = 10

export function createOperatorSessions({
  gateway,
  shared,
  fileUsers,
  secrets
}: Options): OperatorSessions {
  const { role, session } = gateway.ops
  const sources = operatorSources(gateway)
  const store = shared?.operatorStore() ?? createMemoryStore()
  const sessions = createSessions({
    store,
    reviewer: fileUsers,
    seal: createSeal(secrets, 'operator-session'),
    lifeTimes: { idle: session.absolute, absolute: session.absolute, remembered: {} },
    perUser: { max: maxPerOperator, over: 'evict-oldest' },
    maxStalenessMs: 0,
    ...(shared !== undefined && { now: shared.clock.now, ticks: () => performance.now() })
  })

  return {
    open: async (secretId, opening) => (await sessions.open(secretId, opening)).session,
    find: async secretId => {
      const lookup = await sessions.get(secretId)
      if (!('live' in lookup)) return undefined
      const { source, identity } = lookup.live.session
      const isOperator =
        role !== undefined && sources.includes(source) && identity.roles.includes(role)
      if (isOperator) return lookup.live.session
      // A role that comes back later must not revive the session. But a process with an older users
      // file may not know the role yet.
      if (await fileUsers.isLatest(source)) await sessions.close(secretId, 'revoked')
      return undefined
    },
    endOf: ({ absoluteEnd }) => sessions.toWall(absoluteEnd),
    close: async secretId => {
      await sessions.close(secretId, 'revoked')
    },
    forgetReviews: sessions.forgetReviews,
    release: async () => await store.close()
  }
}
