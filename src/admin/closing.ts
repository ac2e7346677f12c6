/** Ends sessions of a user for operators, at their back-ends too. */
import type { Sessions } from '../session/sessions.ts'
import type { Session, SignedIn } from '../session/types.ts'

/** @returns how many were alive. @throws StoreUnavailable */
export type Closing = (user: SignedIn, id?: string) => Promise<number>

/** @param signOut signs sessions that have ended out at their back-ends; not awaited */
export function createClosing(
  sessions: Pick<Sessions, 'endOf'>,
  signOut: (ended: readonly Session[]) => void
): Closing {
  return async (user, id) => {
    const ended = await sessions.endOf(user, id === undefined ? {} : { only: id })
    signOut(ended.sessions)
    return ended.closed
  }
}
