/** The audit ledger of the running gateway. */
import { resolve } from 'node:path'
import type { Config } from '../config/schema/config.ts'
import type { AuditEntry } from '../observability/audit/entry.ts'
import { Ledger } from '../observability/audit/ledger.ts'
import { auditKey } from '../observability/audit/line.ts'
import type { Metrics } from '../observability/metrics.ts'
import { redisHeads } from '../services/audit-heads.ts'
import { writeLines } from '../services/logger.ts'
import type { Log, Services } from '../services/services.ts'
import type { Asking, Outcome, Trigger } from './reload/outcome.ts'

/** @returns undefined where config has no ledger */
export function openAudit({ gateway, folder }: Config, log: Log): Ledger | undefined {
  const { audit } = gateway
  const [newest] = audit?.key ?? []
  if (audit === undefined || newest === undefined) return undefined
  const { to, maxSize, keep } = audit
  return new Ledger({
    // By the log's own writer: lines of the log and of the ledger are never mixed.
    to: to === 'stdout' ? lines => writeLines(log, lines) : resolve(folder, audit.folder),
    key: auditKey(newest),
    maxFileBytes: maxSize,
    keepMs: keep,
    log
  })
}

/** From now on the ends of chains are stored in Redis, if there is one. */
export function storeHeads(
  ledger: Ledger,
  { gateway, folder }: Config,
  { redis, prefix }: Services['background']
): void {
  if (redis === undefined || gateway.audit === undefined) return
  const { to, folder: name } = gateway.audit
  const place = to === 'stdout' ? 'stdout' : resolve(folder, name)
  ledger.storeHeads(redisHeads({ redis, prefix, folder: place }))
}

export function measureAudit(metrics: Metrics, ledger: Ledger): void {
  metrics.read({
    type: 'counter',
    name: 'console_gateway_audit_lines_total',
    help: 'Lines that were written to the audit ledger.',
    read: () => ledger.status().written
  })
  metrics.read({
    type: 'counter',
    name: 'console_gateway_audit_lost_total',
    help: 'Entries of the audit ledger that could not be written.',
    read: () => ledger.status().lost
  })
  metrics.read({
    name: 'console_gateway_audit_writable',
    help: 'Whether the audit ledger can be written: 1 or 0.',
    read: () => (ledger.status().failing === undefined ? 1 : 0)
  })
}

const maxChanges = 20

/** The line of a reload, with its outcome. */
export function reloadEntry(
  outcome: Outcome,
  by: Trigger,
  operator: Asking['operator']
): AuditEntry {
  const isRefused = outcome.outcome === 'refused'
  const texts = isRefused ? outcome.faults : changesOf(outcome)
  return {
    kind: 'config.reload',
    operator: operator?.name ?? by,
    via: operator?.via,
    outcome: isRefused ? 'refused' : 'done',
    detail: {
      generation: outcome.generation,
      ...Object.fromEntries(texts.slice(0, maxChanges).map((text, index) => [index + 1, text]))
    }
  }
}

function changesOf(outcome: Outcome): readonly string[] {
  return 'changes' in outcome ? [...outcome.changes, ...outcome.sessions] : []
}
