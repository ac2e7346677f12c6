/** The routes of the operators' listener that only a serving process can answer. */
import type { FastifyInstance } from 'fastify'
import { addOpsLimits } from '../../admin/limits.ts'
import { addOpsLockouts } from '../../admin/lockouts.ts'
import { operatorCookie } from '../../admin/operator-cookie.ts'
import type { FoundOperator } from '../../admin/operator.ts'
import { addOpsSessions } from '../../admin/sessions.ts'
import { addOperatorSignIn } from '../../admin/sign-in.ts'
import type { OperatorSignIn } from '../../app/sign-in/operators.ts'
import type { Config } from '../../config/schema/config.ts'
import { sourceName } from '../../config/schema/gateway.ts'
import type { Log, Services } from '../../services/services.ts'
import { StoreUnavailable } from '../../session/store.ts'

interface Options {
  readonly config: Config
  readonly services: Services
  /** The config in force, and its check of operators' passwords. */
  readonly generations: {
    readonly config: Config
    readonly vouchForOperator: OperatorSignIn['vouch']
  }
  readonly log: Log
}

export function addServingRoutes(
  ops: FastifyInstance,
  { config, services, generations, log }: Options
): void {
  const sources = config.gateway.login.sources.map(sourceName)
  const { sessions, callers, highestUse } = services
  const limits = () => generations.config.limits
  addOperatorSignIn(ops, {
    sessions: services.operatorSessions,
    vouch: generations.vouchForOperator,
    cookie: operatorCookie(config.gateway.ops),
    log
  })
  addOpsSessions(ops, { sessions, sources, log })
  addOpsLimits(ops, {
    limits,
    idsOf: name => idsOf(generations.config.users, name),
    sources,
    sessions,
    callers,
    highestUse,
    log
  })
  addOpsLockouts(ops, {
    lockouts: services.lockouts,
    ipv6Prefix: () => limits().ipv6Prefix,
    log
  })
}

export async function findOperator(
  sessions: Services['operatorSessions'],
  secretId: string
): Promise<FoundOperator> {
  try {
    const session = await sessions?.find(secretId)
    if (sessions === undefined || session === undefined) return 'none'
    const { identity, source } = session
    return { name: identity.username, via: 'session', source, until: sessions.endOf(session) }
  } catch (error) {
    if (error instanceof StoreUnavailable) return 'unavailable'
    throw error
  }
}

function idsOf(files: Config['users'], name: string): string[] {
  return Object.values(files).flatMap(({ users }) => {
    return Object.hasOwn(users, name) && users[name] !== undefined ? [users[name].id ?? name] : []
  })
}
