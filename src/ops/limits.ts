/** The use of each limit, the counts of one caller, and their reset. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { LimitsConfig } from '../config/schema/limits.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { eachMs, look } from '../limits/gcra.ts'
import type { HighestUse } from '../limits/highest-use.ts'
import { callerOfAddress, callerOfUser, compilePlan } from '../limits/plan.ts'
import type { LimitServices } from '../services/limits.ts'
import type { Sessions } from '../session/sessions.ts'
import type { SignedIn, UserId } from '../session/types.ts'
import { addAct, addOpsScope, addRead, orUnavailable } from './routes.ts'
import {
  callerAnswer,
  type CallerLimit,
  callerSchema,
  limitsAnswer,
  type LimitRow,
  resetAnswer
} from './schemas.ts'
import { findUsers } from './users.ts'

interface Options {
  /** The limits in force. */
  readonly limits: () => LimitsConfig
  readonly known: KnownUsers
  readonly sessions: Pick<Sessions, 'store'>
  readonly callers: LimitServices['callers']
  readonly highestUse: HighestUse
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** Finds users who may have no session. */
interface KnownUsers {
  /** The names of the credential sources. */
  readonly sources: () => readonly string[]
  /** The ids of users with this name in users files. */
  readonly idsOf: (name: string) => readonly string[]
}

export function addOpsLimits(ops: FastifyInstance, options: Options) {
  const { limits, callers, highestUse, log } = options
  const callersOf = createCallersOf(options)

  async function countsOf(subjects: readonly string[]): Promise<CallerLimit[]> {
    const asked = Promise.all(subjects.map(each => callers.ofCaller(each)))
    const counted = await orUnavailable(asked, 'counts')
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

  async function countAnew(caller: string) {
    const subjects = await callersOf(caller)
    const reset = (await countsOf(subjects)).length
    const forgotten = Promise.all(subjects.map(each => callers.forget(each)))
    await orUnavailable(forgotten, 'counts')
    log.info({ event: 'limits.reset', by: 'operator', caller, reset }, 'limits count a caller anew')
    return { reset }
  }

  const list = () =>
    Object.entries(limits().limits).map(([name, limit]): LimitRow => {
      const { mode, by, max, burst = max, window } = limit
      const { hour, day, ...callersNow } = highestUse.read(name)
      return {
        limit: name,
        mode,
        by,
        max: burst,
        windowMs: window,
        ...(hour !== undefined && { hour }),
        ...(day !== undefined && { day }),
        ...callersNow
      }
    })

  addOpsScope(ops, scope => {
    const hint = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
    addRead(scope, {
      path: '/limits',
      summary: 'The use of each limit.',
      answer: limitsAnswer,
      read: () => ({ limits: list() })
    })
    addRead(scope, {
      path: '/limits/caller',
      summary: 'The counts of one caller.',
      hint,
      query: callerSchema,
      answer: callerAnswer,
      read: async ({ caller }) => ({ limits: await countsOf(await callersOf(caller)) })
    })
    addAct(scope, {
      path: '/limits/caller/reset',
      kind: 'limits.reset',
      summary: 'Counts a caller anew.',
      hint,
      body: callerSchema,
      answer: resetAnswer,
      run: async ({ caller }) => await countAnew(caller)
    })
  })
  return {
    list,
    ofUser: async (user: UserId) => await countsOf([callerOf(user)])
  }
}

function callerOf({ source, id }: UserId): string {
  return callerOfUser({ source, identity: { id } })
}

/** Reads the caller whom an operator names: an IP address, or a user by id or name. */
function createCallersOf({ limits, known, sessions: { store } }: Options) {
  return async (named: string): Promise<string[]> => {
    if (isIP(named) !== 0) {
      return [callerOfAddress(createCountedAddress(limits().ipv6Prefix)({ ip: named }))]
    }
    const isNamed = ({ id, username }: SignedIn) => id === named || username === named
    const signedIn = await findUsers(store, named, isNamed)
    const ids = [named, ...known.idsOf(named)]
    const possible = known.sources().flatMap(source => ids.map(id => ({ source, id })))
    return [...new Set([...signedIn, ...possible].map(callerOf))]
  }
}
