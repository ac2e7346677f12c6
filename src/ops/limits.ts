import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { keySource } from '../config/schema/login.ts'
import { countedAddress } from '../app/hooks/address.ts'
import { eachMs, look } from '../limits/gcra.ts'
import type { Use } from '../limits/highest-use.ts'
import { callerOfAddress, callerOfUser, compilePlan } from '../limits/plan.ts'
import { type UserId, userKey } from '../session/types.ts'
import { addRoute, type Desk, orUnavailable } from './routes.ts'
import { count, flag, list, name, number, object, optional, text } from './schemas.ts'
import { findNamed } from './users.ts'

export type LimitRow = Static<typeof limitRow>
export type CallerLimit = Static<typeof callerLimit>

const mode = Type.Enum(['enforce', 'shadow'])
const use = object({ used: Type.Integer(), caller: text() })

const limitRow = object({
  limit: text(),
  mode,
  by: text(),
  max: number('So many at once; `windowMs` later all of them are free.'),
  windowMs: Type.Integer(),
  hour: optional(Type.Unsafe<Use | undefined>(use)),
  day: optional(Type.Unsafe<Use | undefined>(use)),
  over: list(text(), 'Callers that were over it in this hour, the last first.'),
  nearest: list(use, 'Those of this hour that came nearest, the nearest first.')
})

const callerLimit = object({
  limit: text(),
  of: text('Tells counts of one caller apart: session, sign-in.'),
  mode,
  max: Type.Integer(),
  used: Type.Integer(),
  exceeded: flag(),
  retryMs: number('Until one more is allowed.'),
  resetMs: number('Until all is free again.')
})

const ofCaller = object({ caller: name('An IP address, or the id or name of a user.') })

export function addLimitRoutes(ops: FastifyInstance, desk: Desk): void {
  addRoute(ops, '/limits', 'The use of each limit.', {
    answer: object({ limits: list(limitRow) }),
    run: () => ({ limits: limitsOf(desk) })
  })
  addRoute(ops, '/limits/caller', 'The counts of one caller.', {
    takes: ofCaller,
    answer: object({ limits: list(callerLimit) }),
    run: async ({ caller }) => ({ limits: await countsOf(desk, await callersOf(desk, caller)) })
  })
  addRoute(ops, '/limits/caller/reset', 'Counts a caller anew.', {
    kind: 'limits.reset',
    takes: ofCaller,
    answer: object({ reset: count }),
    run: async ({ caller }) => {
      const subjects = await callersOf(desk, caller)
      const reset = (await countsOf(desk, subjects)).length
      const forgotten = Promise.all(subjects.map(each => desk.counts.forget(each)))
      await orUnavailable(forgotten, 'counts')
      return { reset }
    }
  })
}

export function limitsOf({ config, highestUse }: Desk): LimitRow[] {
  return Object.entries(config().limits.limits).map(([limit, { mode: of, by, ...rest }]) => {
    const { max, burst = max, window: windowMs } = rest
    return { limit, mode: of, by, max: burst, windowMs, ...highestUse.read(limit) }
  })
}

export async function countsOfUser(desk: Desk, user: UserId): Promise<CallerLimit[]> {
  return await countsOf(desk, [callerOfUser(userKey(user))])
}

async function countsOf({ config, counts }: Desk, subjects: readonly string[]) {
  const asked = Promise.all(subjects.map(each => counts.ofCaller(each)))
  const counted = await orUnavailable(asked, 'counts')
  const entries = counted.flat().map(({ limit, used }) => {
    const [of = '', ...more] = limit.split(' ')
    return { limit: of, of: more.join(' '), used }
  })
  return compilePlan(config().limits).all.flatMap(({ name: limit, rate, enforced }) => {
    const ofLimit = entries.filter(each => each.limit === limit && each.used > 0)
    return ofLimit.map(({ of, used }): CallerLimit => {
      const { remaining, ...verdict } = look(rate, used * eachMs(rate), 0)
      const max = rate.burst
      const ofMode = enforced ? 'enforce' : 'shadow'
      return { limit, of, mode: ofMode, max, used: max - remaining, ...verdict }
    })
  })
}

async function callersOf({ config, sessions }: Desk, named: string): Promise<string[]> {
  const { gateway, users } = config()
  if (isIP(named) !== 0) return [callerOfAddress(countedAddress({ ip: named }))]
  const signedIn = await findNamed(sessions.store, named)
  // They may have no session.
  const ofFiles = Object.values(users).flatMap(file => {
    const user = Object.hasOwn(file.users, named) ? file.users[named] : undefined
    return user === undefined ? [] : [user.id ?? named]
  })
  const ids = [named, ...ofFiles]
  const sources = [...Object.keys(gateway.login.sources), keySource]
  const possible = sources.flatMap(source => ids.map(id => ({ source, id })))
  return [...new Set([...signedIn, ...possible].map(user => callerOfUser(userKey(user))))]
}
