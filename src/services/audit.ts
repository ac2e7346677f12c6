import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Cluster, Redis } from 'ioredis'
import { Ledger } from '../observability/audit/ledger.ts'
import { auditKey } from '../observability/audit/line.ts'
import type { Head } from '../observability/audit/verify.ts'
import type { Revoked } from '../session/types.ts'
import { writeLines } from './logger.ts'
import type { Background, Basis } from './shared.ts'

const maxFileBytes = 64 * 1024 ** 2

export function openLedger({ config, log, metrics }: Basis, { redis, prefix }: Background) {
  const { audit } = config.gateway
  const [newest] = audit?.key ?? []
  if (audit === undefined || newest === undefined) return undefined
  const folder = audit.to === 'stdout' ? 'stdout' : resolve(config.folder, audit.folder)
  const ledger = new Ledger({
    // By the log's own writer: lines of the log and of the ledger are never mixed.
    to: audit.to === 'stdout' ? lines => writeLines(log, lines) : folder,
    key: auditKey(newest),
    maxFileBytes,
    keepMs: audit.keep,
    heads: redis && chainHeads(redis, prefix, folder),
    log
  })
  metrics.read('console_gateway_audit_writable', () => (ledger.failing === undefined ? 1 : 0))
  return ledger
}

/** The ends of chains: a hash, by chain its `mac` and where its file is. */
export function chainHeads(redis: Redis | Cluster, prefix: string, folder: string) {
  const key = `${prefix}audit-heads`
  const here = `${hostname()} ${folder}`
  return {
    set: (chain: string, mac: string) => redis.hset(key, chain, `${mac} ${here}`),
    remove: (chains: readonly string[]) => redis.hdel(key, ...chains),
    read: async (): Promise<Record<string, Head>> => {
      const stored = Object.entries(await redis.hgetall(key)).map(([chain, text]) => {
        const [mac = ''] = text.split(' ', 1)
        return [chain, { mac, isHere: text === `${mac} ${here}` }]
      })
      return Object.fromEntries(stored) as Record<string, Head>
    }
  }
}

export function recordRevocations(ledger: Pick<Ledger, 'append'>): (revoked: Revoked) => void {
  return ({ user, by, address, requestId, reason, sessions }) => {
    const { id: userId, username, source } = user
    const of = { user: username, userId, source, address, requestId, detail: { by, reason } }
    for (const session of sessions) ledger.append({ kind: 'sessions.revoked', ...of, session })
  }
}
