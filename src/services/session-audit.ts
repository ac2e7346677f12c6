/** Records in the audit ledger the sessions that were ended, and by whom. */
import type { Ledger } from '../observability/audit/ledger.ts'
import type { Revoked } from '../session/session.ts'

/** As many public ids as one text of a line holds. */
const maxIds = 32

export function recordRevocations(ledger: Pick<Ledger, 'append'>): (revoked: Revoked) => void {
  return ({ user, by, address, requestId, reason, sessions, code }) => {
    for (let from = 0; from < sessions.length; from += maxIds) {
      const ids = sessions.slice(from, from + maxIds)
      ledger.append({
        kind: 'sessions.revoked',
        user: user.identity.username,
        userId: user.identity.id,
        source: user.source,
        session: ids.length === 1 ? ids[0] : undefined,
        address,
        code,
        requestId,
        detail: {
          by,
          reason,
          count: ids.length,
          sessions: ids.length === 1 ? undefined : ids.join(' ')
        }
      })
    }
  }
}
