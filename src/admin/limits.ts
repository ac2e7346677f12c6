/**
 * Operators' endpoints: the state of limits for a caller, and numbers for limits from recorded
 * usage.
 */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import type { LimitsConfig } from '../config/schema/limits.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { addOpsScope } from './api.ts'
import { countsBody, type CountsBody, suggestQuery } from './request-schemas.ts'
import { inFlightRouteKey, inFlightKey } from '../app/hooks/limits.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { type LimitSubject, compilePlan } from '../limits/counting/plan.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import { suggest } from '../limits/usage/suggest.ts'
import type { KeptUsage } from '../limits/usage/usage.ts'

interface Options {
  /** The limits in force. */
  readonly limits: () => LimitsConfig
  readonly readUsage: KeptUsage['read']
  readonly leases: Pick<Leases, 'inspect'>
  readonly inFlight: ReadonlyMap<string, number>
}

/** A caller, real or not; without `user` it is not signed in. */
export interface CountsOf {
  readonly route: string
  readonly method: string
  readonly address: string
  /** The user's id, and the credential source that vouched for them. */
  readonly user?: string
  readonly source?: string
  readonly roles?: readonly string[]
}

/** The state of limits for a caller. */
export interface Counts {
  /** Without limits that count a session, since no session is given. */
  readonly counts: ReadonlyArray<Verdict & { readonly limit: string; readonly rule: Rule }>
  /** Requests at the same time, of the caller and of the route, in one process. */
  readonly inFlight: Readonly<Record<string, number>>
}

export function addOpsLimits(
  ops: FastifyInstance,
  { limits, readUsage, leases, inFlight }: Options
): void {
  const add = (scope: FastifyInstance) => {
    scope.get<{ Querystring: Static<typeof suggestQuery> }>(
      '/limits/suggest',
      {
        schema: { summary: 'Numbers for limits, from recorded use.', querystring: suggestQuery },
        schemaErrorFormatter: malformed(
          'sinceMs is a number of milliseconds: /limits/suggest?sinceMs=86400000'
        )
      },
      async ({ query }) => {
        if (readUsage === undefined) {
          throw malformed('No usage is recorded: ops.useRecord is 0s.')()
        }
        const now = Date.now()
        const sinceMs = Number(query.sinceMs)
        return suggest(limits(), await readUsage(now - sinceMs), sinceMs, now)
      }
    )
    scope.post<{ Body: CountsBody }>(
      '/limits/counts',
      {
        schema: { summary: 'The state of limits for a request.', body: countsBody },
        schemaErrorFormatter: malformed(
          'Name the request: {"route": "NAME", "method": "GET", "address": "192.0.2.1", ' +
            '"source": "NAME", "user": "ID", "roles": []}'
        )
      },
      async ({ body }) => await countsOf(body)
    )
  }
  addOpsScope(ops, add)

  async function countsOf(body: CountsBody): Promise<Counts> {
    const { route, method, address } = body
    const config = limits()
    const caller = callerOf(body)
    const { rules, keysOf } = compilePlan(config)(route, method, caller)
    const counted = createCountedAddress(config.ipv6Prefix)({ ip: address })
    const keys = keysOf(counted, caller)
    const readable = rules.flatMap((rule, index) =>
      config.limits[rule.name]?.by.includes('session') === true
        ? []
        : [{ rule, key: keys[index] as string }]
    )
    const verdicts = await leases.inspect(
      readable.map(({ rule }) => rule),
      readable.map(({ key }) => key)
    )
    const names = [inFlightKey(route, counted, caller), inFlightRouteKey(route)]
    return {
      counts: readable.map(({ rule }, index) => ({
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
