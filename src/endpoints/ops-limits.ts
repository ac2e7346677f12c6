/** The operators' desk: how much of each limit its callers used, and which number would have refused nobody. */
import type { FastifyInstance } from 'fastify'
import type { LimitsConfig } from '../config/limits.ts'
import { GatewayError } from '../errors.ts'
import { addDeskRules } from '../hooks/desk.ts'
import { suggest } from '../limits/suggest.ts'
import type { KeptUses } from '../limits/uses.ts'

interface Options {
  /** Those in force. */
  readonly limits: () => LimitsConfig
  readonly readUses: KeptUses['read']
}

const dayMs = 86_400_000

export function addOpsLimits (ops: FastifyInstance, { limits, readUses }: Options): void {
  ops.register(async scope => {
    addDeskRules(scope)
    scope.get('/limits/suggest', async request => {
      const { sinceMs = String(dayMs) } = request.query as { sinceMs?: unknown }
      if (typeof sinceMs !== 'string' || !/^[1-9]\d{0,11}$/.test(sinceMs)) throw new GatewayError('request.malformed', { message: 'Say from how far back: /limits/suggest?sinceMs=86400000' })
      if (readUses === undefined) throw new GatewayError('request.malformed', { message: 'No record of use is kept: ops.useRecord is 0s.' })
      const now = Date.now()
      return suggest(limits(), await readUses(now - Number(sinceMs)), Number(sinceMs), now)
    })
  })
}
