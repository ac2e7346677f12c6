/** The operators' desk: what limits count of one caller now, and counting it anew. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../config/schema/limits.ts'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { addBrowserGuard } from './browser-guard.ts'
import { accountKey } from '../limits/lockout/account.ts'
import type { Counters } from '../limits/counting/counters.ts'
import type { CallerCounts, SubjectKey } from '../limits/counting/callers.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { isOfSignIn, rulesByTail } from '../limits/counting/plan.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import { identityKey } from '../session/identity-key.ts'

interface Options {
  /** Those in force. */
  readonly limits: () => LimitsConfig
  /** The ids of users whose name is this, as users files have them. */
  readonly idsOf: (name: string) => readonly string[]
  /** The names of the credential sources. */
  readonly sources: readonly string[]
  readonly callers: CallerCounts
  readonly leases: Pick<Leases, 'inspect'>
  readonly counters: Counters
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** How one limit stands for the caller. */
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
  /** As sign-in attempts are counted. */
  readonly attempts: { readonly whom: 'address' | 'account'; readonly key: string }
}

export function addCallerLimits(ops: FastifyInstance, options: Options): void {
  const { limits, idsOf, sources, callers, leases, counters, log } = options

  function callerOf(given: unknown): Caller {
    if (typeof given !== 'string' || given === '' || given.length > 255) {
      const message = 'Say whose: {"caller": "192.0.2.1"}, or the id or name of a user.'
      throw new GatewayError('request.malformed', { message })
    }
    if (isIP(given) !== 0) {
      const address = createCountedAddress(limits().ipv6Prefix)({ ip: given })
      return { subjects: [`{a:${address}}`], attempts: { whom: 'address', key: address } }
    }
    const ids = [...new Set([given, ...idsOf(given)])]
    const keys = sources.flatMap(source => {
      return ids.map(id => identityKey({ source, identity: { id } }))
    })
    return {
      subjects: keys.map((key): SubjectKey => `{u:${key}}`),
      attempts: { whom: 'account', key: accountKey(given) }
    }
  }

  /** The limits of sign-in attempts that count this caller, and their keys. */
  function attemptsOf({ attempts: { whom, key } }: Caller) {
    const isHere = ({ mode, by }: LimitConfig) => mode !== 'off' && by.join() === whom
    return Object.entries(limits().limits)
      .filter(([, limit]) => isOfSignIn(limit) && isHere(limit))
      .map(([name, limit]) => ({ name, limit, key: `${name}:${key}` }))
  }

  async function countsOf(caller: Caller): Promise<CallerLimit[]> {
    const rules = rulesByTail(limits())
    const known = await Promise.all(
      caller.subjects.map(async subject => {
        const keys = await callers.keysOf(subject)
        return keys.flatMap(key => {
          return ruleOf(key.slice(subject.length), rules).map(found => ({ key, ...found }))
        })
      })
    )
    const all = known.flat()
    const verdicts = await leases.inspect(
      all.map(({ rule }) => rule),
      all.map(({ key }) => key)
    )
    const counted = all.map(({ rule, of }, index) => shown(rule, of, verdicts[index] as Verdict))
    const attempts = await Promise.all(
      attemptsOf(caller).map(async ({ name, limit, key }) => {
        const { current, ttl } = await counters.look(key)
        return {
          limit: name,
          of: 'sign-in attempts',
          mode: limit.mode,
          max: limit.max,
          used: current,
          exceeded: current >= limit.max,
          retryMs: current >= limit.max ? ttl : 0,
          resetMs: ttl
        }
      })
    )
    return [...counted, ...attempts.filter(({ used }) => used > 0)]
  }

  async function asked<T>(answer: Promise<T>): Promise<T> {
    return await answer.catch((cause: unknown) => {
      const message = 'Redis, which holds the counters, does not answer. Please try again soon.'
      throw new GatewayError('session.unavailable', { cause, message })
    })
  }

  ops.register(async scope => {
    addBrowserGuard(scope)
    scope.get('/limits/caller', async request => {
      const { caller } = request.query as { caller?: unknown }
      return { limits: await asked(countsOf(callerOf(caller))) }
    })
    scope.post('/limits/caller/reset', async request => {
      const { caller: given } = (request.body ?? {}) as { caller?: unknown }
      const caller = callerOf(given)
      const reset = await asked(countsOf(caller))
      await asked(Promise.all(caller.subjects.map(subject => callers.forget(subject))))
      await asked(Promise.all(attemptsOf(caller).map(({ key }) => counters.forget(key))))
      const fields = { event: 'limits.reset', by: 'operator', caller: given, reset: reset.length }
      log.info(fields, 'limits count a caller anew')
      return { reset: reset.length }
    })
  })
}

/** The rule of a key, by what stands behind whom it counts; none where that limit is gone. */
function ruleOf(
  rest: string,
  rules: ReadonlyMap<string, Rule>
): Array<{ readonly rule: Rule; readonly of: string }> {
  const [name = '', kind = '', ...of] = rest.split('.')
  const rule = rules.get(`${name}.${kind}`)
  return rule === undefined ? [] : [{ rule, of: of.join('.') }]
}

function shown(rule: Rule, of: string, verdict: Verdict): CallerLimit {
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
