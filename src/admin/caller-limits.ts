/** Operators' endpoints: shows the counts of one caller by its limits, and resets them. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../config/schema/limits.ts'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { operatorsKey } from '../app/hooks/sign-in-guard.ts'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import { accountKey } from '../limits/lockout/account.ts'
import type { Counters } from '../limits/counting/counters.ts'
import type { CallerCounts, SubjectKey } from '../limits/counting/callers.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { isOfSignIn, rulesByTail } from '../limits/counting/plan.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import { identityKey } from '../session/identity-key.ts'
import { callerSchema, type NamedCaller } from './request-schemas.ts'

interface Options {
  /** The limits in force. */
  readonly limits: () => LimitsConfig
  /** The ids of users with this name in users files. */
  readonly idsOf: (name: string) => readonly string[]
  /** The names of the credential sources. */
  readonly sources: readonly string[]
  readonly callers: CallerCounts
  readonly leases: Pick<Leases, 'inspect'>
  readonly counters: Counters
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** The state of one limit for the caller. */
export interface CallerLimit {
  readonly limit: string
  /** Tells this count from others of the same caller: a session, an address, or sign-in. */
  readonly of: string
  readonly mode: string
  readonly max: number
  readonly used: number
  readonly exceeded: boolean
  /** Milliseconds until one more is allowed. */
  readonly retryMs: number
  /** Milliseconds until all is free again. */
  readonly resetMs: number
}

interface Caller {
  readonly subjects: readonly SubjectKey[]
  /** The key by which sign-in attempts are counted. */
  readonly attempts: { readonly by: 'address' | 'account'; readonly key: string }
}

export function addCallerLimits(ops: FastifyInstance, options: Options): void {
  const { limits, callers, counters, log } = options
  const callerOf = createCallerOf(options)
  const countsOf = createCountsOf(options)

  async function orUnavailable<T>(response: Promise<T>): Promise<T> {
    return await response.catch((cause: unknown) => {
      const message = 'Redis, which holds the counters, does not answer. Please try again soon.'
      throw new GatewayError('session.unavailable', { cause, message })
    })
  }

  async function reset(body: NamedCaller): Promise<object> {
    const caller = callerOf(body.caller)
    const counted = await orUnavailable(countsOf(caller))
    const keys = attemptLimitsOf(caller, limits()).map(({ key }) => key)
    await orUnavailable(Promise.all(caller.subjects.map(subject => callers.forget(subject))))
    await orUnavailable(Promise.all(keys.map(key => counters.forget(key))))
    const fields = {
      event: 'limits.reset',
      by: 'operator',
      caller: body.caller,
      reset: counted.length
    }
    log.info(fields, 'limits count a caller anew')
    return { reset: counted.length }
  }

  const add = (scope: FastifyInstance) => {
    const hint = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
    const schema = { summary: 'The counts of one caller.', querystring: callerSchema }
    scope.get<{ Querystring: NamedCaller }>(
      '/limits/caller',
      { schema, schemaErrorFormatter: malformed(hint) },
      async ({ query }) => ({ limits: await orUnavailable(countsOf(callerOf(query.caller))) })
    )
    addAct(scope, {
      path: '/limits/caller/reset',
      kind: 'limits.reset',
      summary: 'Counts a caller anew.',
      body: callerSchema,
      hint,
      preview: async ({ caller }) => ({
        limits: (await orUnavailable(countsOf(callerOf(caller)))).length
      }),
      run: reset,
      undo: undefined
    })
  }
  addOpsScope(ops, add)
}

/** Reads the caller whom an operator names: an IP address, or a user by id or name. */
function createCallerOf({ limits, idsOf, sources }: Options): (named: string) => Caller {
  return named => {
    if (isIP(named) !== 0) {
      const address = createCountedAddress(limits().ipv6Prefix)({ ip: named })
      return { subjects: [`{a:${address}}`], attempts: { by: 'address', key: address } }
    }
    const ids = [...new Set([named, ...idsOf(named)])]
    const keys = sources.flatMap(source => {
      return ids.map(id => identityKey({ source, identity: { id } }))
    })
    return {
      subjects: keys.map((key): SubjectKey => `{u:${key}}`),
      attempts: { by: 'account', key: accountKey(named) }
    }
  }
}

/** Reads the state of each limit that counts the caller now. */
function createCountsOf({ limits, callers, leases, counters }: Options) {
  async function ofRequests({ subjects }: Caller): Promise<CallerLimit[]> {
    const rules = rulesByTail(limits())
    const counted = await Promise.all(
      subjects.map(async subject => {
        const keys = await callers.keysOf(subject)
        return keys.flatMap(key =>
          ruleOf(key.slice(subject.length), rules).map(({ rule, of }) => ({ key, rule, of }))
        )
      })
    )
    const entries = counted.flat()
    const verdicts = await leases.inspect(
      entries.map(({ rule }) => rule),
      entries.map(({ key }) => key)
    )
    return entries.map(({ rule, of }, index) => toJson(rule, of, verdicts[index] as Verdict))
  }

  async function ofAttempts(caller: Caller): Promise<CallerLimit[]> {
    const counted = await Promise.all(
      attemptLimitsOf(caller, limits()).map(async ({ name, of, limit: { mode, max }, key }) => {
        const { current, ttl } = await counters.look(key)
        return {
          limit: name,
          of,
          mode,
          max,
          used: current,
          exceeded: current >= max,
          retryMs: current >= max ? ttl : 0,
          resetMs: ttl
        }
      })
    )
    return counted.filter(({ used }) => used > 0)
  }

  return async (caller: Caller): Promise<CallerLimit[]> => [
    ...(await ofRequests(caller)),
    ...(await ofAttempts(caller))
  ]
}

/**
 * The limits of sign-in attempts that count the caller, at the console and at the operators' page,
 * and their keys. Without those of an account and an address together: such keys cannot be listed.
 */
function attemptLimitsOf({ attempts: { by: subject, key } }: Caller, { limits }: LimitsConfig) {
  const isHere = ({ mode, by }: LimitConfig) => mode !== 'off' && by.join() === subject
  return Object.entries(limits)
    .filter(([, limit]) => isOfSignIn(limit) && isHere(limit))
    .flatMap(([name, limit]) => {
      const counted = `${name}:${key}`
      const ofPage = 'sign-in attempts at the operators’ page'
      return [
        { name, of: 'sign-in attempts', limit, key: counted },
        { name, of: ofPage, limit, key: operatorsKey(counted) }
      ]
    })
}

/** The rule of a key, by the part behind its subject; none when the limit was removed. */
function ruleOf(
  rest: string,
  rules: ReadonlyMap<string, Rule>
): Array<{ readonly rule: Rule; readonly of: string }> {
  const [name = '', kind = '', ...of] = rest.split('.')
  const rule = rules.get(`${name}.${kind}`)
  return rule === undefined ? [] : [{ rule, of: of.join('.') }]
}

function toJson(rule: Rule, of: string, verdict: Verdict): CallerLimit {
  const { kind, max, burst, name, enforced } = rule
  const { remaining, exceeded, retryMs, resetMs } = verdict
  const room = kind === 'bucket' ? burst : max
  return {
    limit: name,
    of: of.replace(/^sign-in\.?/, 'sign-in '),
    mode: enforced ? 'enforce' : 'shadow',
    max: room,
    used: room - remaining,
    exceeded,
    retryMs,
    resetMs
  }
}
