/** The operators' desk: how limits stand for somebody, how much of each its callers used, and which number would have refused nobody. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import type { LimitsConfig } from '../config/schema/limits.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { guardAdminScope } from './browser-guard.ts'
import { countsBody, type CountsBody, suggestQuery } from './request-schemas.ts'
import { inFlightRouteKey, inFlightKey } from '../app/hooks/limits.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { type LimitSubject, compilePlan } from '../limits/counting/plan.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import { suggest } from '../limits/usage/suggest.ts'
import type { KeptUsage } from '../limits/usage/usage.ts'

interface Options {
  /** Those in force. */
  readonly limits: () => LimitsConfig
  readonly readUsage: KeptUsage['read']
  readonly leases: Pick<Leases, 'inspect'>
  readonly inFlight: ReadonlyMap<string, number>
}

/** Somebody who need not be there; not signed in without `user`. */
export interface CountsOf {
  readonly route: string
  readonly method: string
  readonly address: string
  /** The user's id, and the credential source that vouched for them. */
  readonly user?: string
  readonly source?: string
  readonly roles?: readonly string[]
}

/** How limits stand for somebody. */
export interface Counts {
  /** Without those that count a session, which cannot be known so. */
  readonly counts: ReadonlyArray<Verdict & { readonly limit: string; readonly rule: Rule }>
  /** Requests at the same time, of the caller and of the route, in one process. */
  readonly inFlight: Readonly<Record<string, number>>
}

export function addOpsLimits(
  ops: FastifyInstance,
  { limits, readUsage, leases, inFlight }: Options
): void {
  ops.register(async scope => {
    guardAdminScope(scope)
    scope.get<{ Querystring: Static<typeof suggestQuery> }>(
      '/limits/suggest',
      {
        schema: { querystring: suggestQuery },
        schemaErrorFormatter: malformed('Say from how far back: /limits/suggest?sinceMs=86400000')
      },
      async ({ query }) => {
        if (readUsage === undefined) {
          throw malformed('No record of use is kept: ops.useRecord is 0s.')()
        }
        const now = Date.now()
        const sinceMs = Number(query.sinceMs)
        return suggest(limits(), await readUsage(now - sinceMs), sinceMs, now)
      }
    )
    scope.post<{ Body: CountsBody }>(
      '/limits/counts',
      {
        schema: { body: countsBody },
        schemaErrorFormatter: malformed(
          'Say of whom: {"route": "NAME", "method": "GET", "address": "192.0.2.1", ' +
            '"source": "NAME", "user": "ID", "roles": []}'
        )
      },
      async ({ body }) => await countsOf(body)
    )
  })

  async function countsOf(body: CountsBody): Promise<Counts> {
    const { route, method, address } = body
    const inForce = limits()
    const caller = callerOf(body)
    const { rules, keysOf } = compilePlan(inForce)(route, method, caller)
    const counted = createCountedAddress(inForce.ipv6Prefix)({ ip: address })
    const keys = keysOf(counted, caller)
    const known = rules.flatMap((rule, index) =>
      inForce.limits[rule.name]?.by.includes('session') === true
        ? []
        : [{ rule, key: keys[index] as string }]
    )
    const verdicts = await leases.inspect(
      known.map(({ rule }) => rule),
      known.map(({ key }) => key)
    )
    const names = [inFlightKey(route, counted, caller), inFlightRouteKey(route)]
    return {
      counts: known.map(({ rule }, index) => ({
        limit: rule.name,
        rule,
        ...(verdicts[index] as Verdict)
      })),
      inFlight: Object.fromEntries(names.map(name => [name, inFlight.get(name) ?? 0]))
    }
  }
}

function callerOf({ user: id, source, roles }: CountsBody): LimitSubject | undefined {
  if (typeof id !== 'string') return undefined
  if (typeof source !== 'string') {
    throw malformed('Name the source of the user: {"source": "users-file", "user": "ID"}.')()
  }
  return { id: '', source, identity: { id, roles: Array.isArray(roles) ? roles.map(String) : [] } }
}
