/** Operators' endpoints for limits: the use of each, the counts of one caller, and their reset. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../config/schema/limits.ts'
import { GatewayError } from '../errors/errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { eachMs, look } from '../limits/gcra.ts'
import type { HighestUse, LimitUse } from '../limits/highest-use.ts'
import { callerOfAddress, callerOfUser, compilePlan } from '../limits/plan.ts'
import type { LimitServices } from '../services/limits.ts'
import type { Sessions } from '../session/sessions.ts'
import type { UserId } from '../session/types.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import { createUserFinder, type KnownUsers, possibleUsers } from './find-users.ts'
import { callerSchema, type NamedCaller } from './request-schemas.ts'

interface Options {
  /** The limits in force. */
  readonly limits: () => LimitsConfig
  readonly known: KnownUsers
  readonly sessions: Pick<Sessions, 'store'>
  readonly callers: LimitServices['callers']
  readonly highestUse: HighestUse
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** The use of a limit, as this process knows it. */
export interface LimitRow extends LimitUse {
  readonly limit: string
  readonly mode: LimitConfig['mode']
  readonly by: LimitConfig['by']
  /** So many at once; all of them are free again in `windowMs`, or later with `burst`. */
  readonly max: number
  readonly windowMs: number
}

/** The state of one limit for a caller. */
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

export function addOpsLimits(ops: FastifyInstance, options: Options) {
  const { limits, callers, highestUse, log } = options
  const callersOf = createCallersOf(options)

  async function countsOf(subjects: readonly string[]): Promise<CallerLimit[]> {
    const counted = await Promise.all(subjects.map(each => callers.ofCaller(each)))
    const counts = counted.flat().map(({ limit, used }) => {
      const [name = '', ...of] = limit.split(' ')
      return { name, of: of.join(' '), used }
    })
    return compilePlan(limits()).all.flatMap(({ name, rate, enforced }) => {
      const ofLimit = counts.filter(each => each.name === name && each.used > 0)
      return ofLimit.map(({ of, used }): CallerLimit => {
        const { remaining, ...verdict } = look(rate, used * eachMs(rate), 0)
        const mode = enforced ? 'enforce' : 'shadow'
        const max = rate.burst
        return { limit: name, of, mode, max, used: max - remaining, ...verdict }
      })
    })
  }

  async function reset({ caller }: NamedCaller): Promise<object> {
    const subjects = await orUnavailable(callersOf(caller))
    const counted = await orUnavailable(countsOf(subjects))
    await orUnavailable(Promise.all(subjects.map(each => callers.forget(each))))
    const fields = { event: 'limits.reset', by: 'operator', caller, reset: counted.length }
    log.info(fields, 'limits count a caller anew')
    return { reset: counted.length }
  }

  const list = () =>
    Object.entries(limits().limits).map(([name, limit]): LimitRow => {
      const { mode, by, max, burst = max, window } = limit
      return { limit: name, mode, by, max: burst, windowMs: window, ...highestUse.read(name) }
    })

  const add = (scope: FastifyInstance) => {
    const hint = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
    scope.get('/limits', { schema: { summary: 'The use of each limit.' } }, () => ({
      limits: list()
    }))
    scope.get<{ Querystring: NamedCaller }>(
      '/limits/caller',
      {
        schema: { summary: 'The counts of one caller.', querystring: callerSchema },
        schemaErrorFormatter: malformed(hint)
      },
      async ({ query }) => ({ limits: await orUnavailable(callersOf(query.caller).then(countsOf)) })
    )
    addAct(scope, {
      path: '/limits/caller/reset',
      kind: 'limits.reset',
      summary: 'Counts a caller anew.',
      body: callerSchema,
      hint,
      run: reset
    })
  }
  addOpsScope(ops, add)
  return {
    list,
    ofUser: async (user: UserId) => await orUnavailable(countsOf([callerOf(user)]))
  }
}

function callerOf({ source, id }: UserId): string {
  return callerOfUser({ source, identity: { id } })
}

async function orUnavailable<T>(response: Promise<T>): Promise<T> {
  return await response.catch((cause: unknown) => {
    const message = 'Redis, which holds the counts, does not answer. Please try again soon.'
    throw new GatewayError('session.unavailable', { cause, message })
  })
}

/** Reads the caller whom an operator names: an IP address, or a user by id or name. */
function createCallersOf({ limits, known, sessions }: Options) {
  const finder = createUserFinder(sessions.store)
  return async (named: string): Promise<string[]> => {
    if (isIP(named) !== 0) {
      return [callerOfAddress(createCountedAddress(limits().ipv6Prefix)({ ip: named }))]
    }
    const { users } = await finder.find({ user: named })
    return [...new Set([...users, ...possibleUsers(known, named)].map(callerOf))]
  }
}
