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

interface Options {
  readonly gateway: GatewayConfig
  readonly shared: Shared | undefined
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
}

const maxPerOperator = 10

/** Of its functions `open`, `find` and `close` each @throws StoreUnavailable */
export function createOperatorSessions({ gateway, shared, fileUsers, secrets }: Options) {
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
    ...shared?.times
  })
  const close = async (secretId: string): Promise<void> => {
    await sessions.close(secretId, 'revoked')
  }
  return {
    open: async (secretId: string, opening: NewSession): Promise<Session> =>
      (await sessions.open(secretId, opening)).session,
    /** The live session of a user who is an operator still. */
    find: async (secretId: string): Promise<Session | undefined> => {
      const lookup = await sessions.get(secretId)
      if (!('live' in lookup)) return undefined
      const { source, identity } = lookup.live.session
      const isOperator =
        role !== undefined && sources.includes(source) && identity.roles.includes(role)
      if (isOperator) return lookup.live.session
      // A role that comes back later must not revive the session. But a process with an older users
      // file may not know the role yet.
      if (await fileUsers.isLatest(source)) await close(secretId)
      return undefined
    },
    /** By the wall clock, in milliseconds since the epoch. */
    endOf: ({ absoluteEnd }: Session): number => sessions.toWall(absoluteEnd),
    close,
    /** To be called when the users files changed. */
    forgetReviews: sessions.forgetReviews,
    release: () => store.close()
  }
}
