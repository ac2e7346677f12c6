/** Acts of operators in the audit ledger. */
import type { ActEntry, ActLedger } from './acts.ts'
import type { AuditEntry } from '../observability/audit/entry.ts'
import type { Ledger } from '../observability/audit/ledger.ts'

/**
 * Acts that only take rights away. They go on where the ledger cannot be written: who is signed in
 * with a stolen password must not stay so because a disk is full. Their lines wait in memory.
 */
const protectiveActs = new Set(['sessions.close', 'users.block'])

interface Options {
  readonly ledger: Ledger
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

export function createActLedger({ ledger, log }: Options): ActLedger {
  return {
    check: act => {
      if (!protectiveActs.has(act)) ledger.check()
    },
    append: entry => ledger.append(toAuditEntry(entry)),
    commit: async entry => {
      try {
        await ledger.commit(toAuditEntry(entry))
      } catch (error) {
        const { act, operator, requestId } = entry
        log.warn(
          { event: 'audit.late', act, operator: operator.name, requestId, err: error },
          'an act of an operator is done though its line is not on disk yet'
        )
      }
    }
  }
}

function toAuditEntry(entry: ActEntry): AuditEntry {
  const { event, act, operator, address, requestId, details, code } = entry
  return {
    kind: 'act',
    act,
    outcome: event === 'act.done' ? 'done' : 'failed',
    operator: operator.name,
    via: operator.via,
    address,
    requestId,
    code,
    detail: Object.fromEntries(
      Object.entries(details).map(([name, value]) => [name, scalarOf(value)])
    )
  }
}

function scalarOf(value: unknown): string | number | boolean | undefined {
  const isScalar = ['string', 'number', 'boolean', 'undefined'].includes(typeof value)
  return isScalar ? (value as string | number | boolean | undefined) : JSON.stringify(value)
}
