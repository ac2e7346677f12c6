/** The use of each limit, the counts of one caller, and their reset. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema/config.ts'
import { countedAddress } from '../app/hooks/address.ts'
import { eachMs, look } from '../limits/gcra.ts'
import { callerOfAddress, callerOfUser, compilePlan } from '../limits/plan.ts'
import { type SignedIn, type UserId, userKey } from '../session/types.ts'
import type { Desk } from './desk.ts'
import { addAct, addRead, orUnavailable } from './routes.ts'
import {
  callerAnswer,
  type CallerLimit,
  callerSchema,
  limitsAnswer,
  type LimitRow,
  resetAnswer
} from './schemas.ts'
import { findUsers } from './users.ts'

export function addOpsLimits(ops: FastifyInstance, desk: Desk) {
  const { config, callers, highestUse, log } = desk

  async function countsOf(subjects: readonly string[]): Promise<CallerLimit[]> {
    const asked = Promise.all(subjects.map(each => callers.ofCaller(each)))
    const counted = await orUnavailable(asked, 'counts')
    const counts = counted.flat().map(({ limit, used }) => {
      const [name = '', ...of] = limit.split(' ')
      return { name, of: of.join(' '), used }
    })
    return compilePlan(config().limits).all.flatMap(({ name, rate, enforced }) => {
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
    const subjects = await callersOf(desk, caller)
    const reset = (await countsOf(subjects)).length
    const forgotten = Promise.all(subjects.map(each => callers.forget(each)))
    await orUnavailable(forgotten, 'counts')
    log.info({ event: 'limits.reset', by: 'operator', caller, reset }, 'limits count a caller anew')
    return { reset }
  }

  const list = () =>
    Object.entries(config().limits.limits).map(([name, limit]): LimitRow => {
      const { mode, by, max, burst = max, window } = limit
      return { limit: name, mode, by, max: burst, windowMs: window, ...highestUse.read(name) }
    })

  const hint = 'Name the caller: {"caller": "192.0.2.1"}, or the id or name of a user.'
  addRead(ops, {
    path: '/limits',
    summary: 'The use of each limit.',
    answer: limitsAnswer,
    read: () => ({ limits: list() })
  })
  addRead(ops, {
    path: '/limits/caller',
    summary: 'The counts of one caller.',
    hint,
    query: callerSchema,
    answer: callerAnswer,
    read: async ({ caller }) => ({ limits: await countsOf(await callersOf(desk, caller)) })
  })
  addAct(ops, {
    path: '/limits/caller/reset',
    kind: 'limits.reset',
    summary: 'Counts a caller anew.',
    hint,
    body: callerSchema,
    answer: resetAnswer,
    run: async ({ caller }) => await countAnew(caller)
  })
  return {
    list,
    ofUser: async (user: UserId) => await countsOf([callerOfUser(userKey(user))])
  }
}

/** The callers whom an operator names: an IP address, or users by id or name. */
async function callersOf({ config, sessions }: Desk, named: string): Promise<string[]> {
  const { gateway, users } = config()
  if (isIP(named) !== 0) return [callerOfAddress(countedAddress({ ip: named }))]
  const isNamed = ({ id, username }: SignedIn) => id === named || username === named
  const signedIn = await findUsers(sessions.store, named, isNamed)
  // They may have no session.
  const ids = [named, ...idsOf(users, named)]
  const sources = Object.keys(gateway.login.sources)
  const possible = sources.flatMap(source => ids.map(id => ({ source, id })))
  return [...new Set([...signedIn, ...possible].map(user => callerOfUser(userKey(user))))]
}

/** The ids of users with this name in users files. */
function idsOf(files: Config['users'], name: string): string[] {
  return Object.values(files).flatMap(({ users }) => {
    return Object.hasOwn(users, name) && users[name] !== undefined ? [users[name].id ?? name] : []
  })
}
