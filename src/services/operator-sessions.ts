/** The sessions of operators: as those of consoles, with keys and a seal of their own. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { operatorSources } from '../config/schema/operators.ts'
import type { FileUsers } from '../login/file-users.ts'
import { MemoryStore } from '../session/memory-store.ts'
import { createSeal } from '../session/seal.ts'
import { Sessions } from '../session/sessions.ts'
import type { Live, NewSession, Session } from '../session/types.ts'
import type { Shared } from './shared.ts'

interface Options {
  readonly gateway: GatewayConfig
  readonly shared: Shared | undefined
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
}

export interface OperatorSession {
  readonly session: Session
  /** By the wall clock, in milliseconds since the epoch. */
  readonly until: number
}

const maxPerOperator = 10
const maxOperators = 1000

/** Of its functions those that are async each @throws StoreUnavailable */
export function createOperatorSessions({ gateway, shared, fileUsers, secrets }: Options) {
  const { role, session: times } = gateway.ops
  const sources = operatorSources(gateway)
  const store = shared?.operators ?? new MemoryStore()
  /** Undefined for users who are no operators any more. */
  const review = (session: Session): Session | undefined => {
    const current = fileUsers.review(session)
    if (current === undefined || role === undefined || !sources.includes(current.source)) {
      return undefined
    }
    return current.identity.roles.includes(role) ? current : undefined
  }
  const sessions = new Sessions({
    store,
    review,
    seal: createSeal(secrets, 'operator-session'),
    lifeTimes: { idle: times.absolute, absolute: times.absolute, remembered: {} },
    perUser: { max: maxPerOperator, over: 'evict-oldest' }
  })
  const shown = ({ session, absoluteEnd }: Live): OperatorSession => {
    return { session, until: absoluteEnd + sessions.times().aheadMs }
  }
  return {
    open: async (secretId: string, opening: NewSession): Promise<OperatorSession> =>
      shown(await sessions.open(secretId, opening)),
    /** The live session of a user who is an operator still. */
    find: async (secretId: string): Promise<OperatorSession | undefined> => {
      const found = await sessions.get(secretId)
      return 'live' in found ? shown(found.live) : undefined
    },
    close: async (secretId: string): Promise<void> => {
      const found = await sessions.get(secretId)
      if ('live' in found) await sessions.end(found.live, 'revoked')
    },
    /** Ends the sessions of those who are no operators any more, since the users files changed. */
    endRefused: async (): Promise<void> => {
      sessions.forget()
      const { users } = await sessions.store.signedIn(maxOperators)
      for (const user of users) await sessions.endReviewed(user)
    }
  }
}
