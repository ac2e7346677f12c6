/** The audit ledger of the running gateway: opens it, stores its heads in Redis, measures it. */
import { resolve } from 'node:path'
import type { Config } from '../config/schema/config.ts'
import { usesRedis } from '../config/schema/gateway.ts'
import type { AuditEntry } from '../observability/audit/entry.ts'
import { makeFolder } from '../observability/audit/folder.ts'
import { headFiles } from '../observability/audit/head.ts'
import { createLedger, type OpenLedger } from '../observability/audit/ledger.ts'
import { type AuditKey, auditKeys } from '../observability/audit/line.ts'
import type { Metrics } from '../observability/metrics.ts'
import { redisHeads } from '../services/audit-heads.ts'
import type { Log, Services } from '../services/services.ts'
import type { Attempt, Outcome } from './reload/outcome.ts'

type Redis = NonNullable<Services['background']['redis']>

export interface AuditLedger extends OpenLedger {
  /** Absolute. */
  readonly folder: string
  readonly keys: readonly AuditKey[]
  /** Gives it the client for its heads, which is made later than the ledger. */
  readonly useRedis: (redis: Redis | undefined) => void
}

/**
 * @param opened gets what closes it
 * @returns undefined where config has no ledger
 */
export function openAudit(
  { gateway, folder }: Config,
  log: Log,
  opened: Array<() => unknown>
): AuditLedger | undefined {
  const { audit, redis } = gateway
  if (audit === undefined) return undefined
  const place = resolve(folder, audit.folder)
  const keys = auditKeys(audit.key)
  const [newest, ...former] = keys
  if (newest === undefined) return undefined
  const client = Promise.withResolvers<Redis>()
  const heads =
    redis !== undefined && usesRedis(gateway)
      ? redisHeads(() => client.promise, redis.prefix)
      : headFiles(place)
  try {
    // So that an empty ledger can be searched. If this fails, the first write says why.
    makeFolder(place)
  } catch {}
  const ledger = createLedger({
    folder: place,
    keys: [newest, ...former],
    maxFileBytes: audit.maxSize,
    maxFileMs: audit.maxAge,
    keepMs: audit.keep,
    now: Date.now,
    heads,
    log
  })
  opened.push(ledger.close)
  const useRedis: AuditLedger['useRedis'] = redisClient => {
    if (redisClient !== undefined) client.resolve(redisClient)
  }
  return Object.assign(ledger, { folder: place, keys, useRedis })
}

export function measureAudit(metrics: Metrics, ledger: OpenLedger): void {
  metrics.read({
    type: 'counter',
    name: 'console_gateway_audit_lines_total',
    help: 'Lines that were written to the audit ledger.',
    read: () => [[[], ledger.status().written]]
  })
  metrics.read({
    type: 'counter',
    name: 'console_gateway_audit_lost_total',
    help: 'Entries of the audit ledger that could not be written.',
    read: () => [[[], ledger.status().lost]]
  })
  metrics.read({
    type: 'counter',
    name: 'console_gateway_audit_cut_total',
    help: 'How often lines of the audit ledger were found cut, changed or deleted.',
    read: () => [[[], ledger.status().cut]]
  })
  metrics.read({
    name: 'console_gateway_audit_writable',
    help: 'Whether the audit ledger can be written: 1 or 0.',
    read: () => [[[], ledger.status().failing === undefined ? 1 : 0]]
  })
}

const maxChanges = 20

/** The line of a reload, with its outcome. */
export function reloadEntry({ kind, by, operator }: Attempt, outcome: Outcome): AuditEntry {
  const texts = outcome.outcome === 'refused' ? outcome.faults : changesOf(outcome)
  return {
    kind,
    operator: operator?.name ?? by,
    via: operator?.via,
    outcome: outcome.outcome === 'refused' ? 'refused' : 'done',
    detail: {
      generation: outcome.generation,
      ...Object.fromEntries(texts.slice(0, maxChanges).map((text, index) => [index + 1, text]))
    }
  }
}

function changesOf(outcome: Outcome): readonly string[] {
  return 'changes' in outcome ? [...outcome.changes, ...outcome.sessions] : []
}
