/** The operators' desk: how limits stand for somebody, how much of each its callers used, and which number would have refused nobody. */
import type { FastifyInstance } from 'fastify'
import type { LimitsConfig } from '../config/limits.ts'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../hooks/address.ts'
import { addDeskRules } from '../hooks/desk.ts'
import type { Leases } from '../limits/leases.ts'
import { compilePlan } from '../limits/plan.ts'
import { suggest } from '../limits/suggest.ts'
import type { KeptUses } from '../limits/uses.ts'

interface Options {
  /** Those in force. */
  readonly limits: () => LimitsConfig
  readonly readUses: KeptUses['read']
  readonly leases: Pick<Leases, 'look'>
}

/** How a limit stands for somebody. */
export interface Count {
  readonly limit: string
  readonly remaining: number
  readonly exceeded: boolean
  readonly resetMs: number
  readonly retryMs: number
}

const dayMs = 86_400_000

export function addOpsLimits (ops: FastifyInstance, { limits, readUses, leases }: Options): void {
  ops.register(async scope => {
    addDeskRules(scope)
    scope.get('/limits/suggest', async request => {
      const { sinceMs = String(dayMs) } = request.query as { sinceMs?: unknown }
      if (typeof sinceMs !== 'string' || !/^[1-9]\d{0,11}$/.test(sinceMs)) throw new GatewayError('request.malformed', { message: 'Say from how far back: /limits/suggest?sinceMs=86400000' })
      if (readUses === undefined) throw new GatewayError('request.malformed', { message: 'No record of use is kept: ops.useRecord is 0s.' })
      const now = Date.now()
      return suggest(limits(), await readUses(now - Number(sinceMs)), Number(sinceMs), now)
    })
    // Of a caller who need not be there; what counts a session cannot be known so.
    scope.post('/limits/counts', async request => {
      const { route, method, address, user, roles } = (request.body ?? {}) as Record<string, unknown>
      if (typeof route !== 'string' || typeof method !== 'string' || typeof address !== 'string') throw new GatewayError('request.malformed', { message: 'Say of whom: {"route": "NAME", "method": "GET", "address": "192.0.2.1", "user": "ID", "roles": []}' })
      const inForce = limits()
      const caller = typeof user !== 'string' ? undefined : { id: '', identity: { id: user, roles: Array.isArray(roles) ? roles.map(String) : [] } }
      const { rules, keysOf } = compilePlan(inForce)(route, method, caller)
      const keys = keysOf(createCountedAddress(inForce.ipv6Prefix)({ ip: address }), caller)
      const known = rules.flatMap((rule, index) => [inForce.limits[rule.name]?.by].flat().includes('session') ? [] : [{ rule, key: keys[index] as string }])
      const verdicts = await leases.look(known.map(({ rule }) => rule), known.map(({ key }) => key))
      return { counts: verdicts.map(({ remaining, exceeded, resetMs, retryMs }, index): Count => ({ limit: known[index]?.rule.name ?? '', remaining, exceeded, resetMs, retryMs })) }
    })
  })
}
