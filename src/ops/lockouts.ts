import { malformed } from '../errors/errors.ts'
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { countedAddress } from '../app/hooks/address.ts'
import { challenge } from '../app/sign-in/guard.ts'
import { type Lock, operatorsApart, partsOf } from '../limits/lockouts.ts'
import { accountKey } from '../session/types.ts'
import { addRoute, type Desk, orUnavailable } from './routes.ts'
import { count, list, object, optional, text, time } from './schemas.ts'

export type LockoutsOf = Static<typeof lockoutsOf>
export type LockoutJson = Static<typeof lockout>
export type LockoutsAnswer = Static<typeof lockoutsAnswer>

const lockoutsOf = object({
  account: optional(text('', { minLength: 1 })),
  address: optional(text('', { format: 'ip' }))
})
const lockout = object({
  kind: text(),
  account: optional(text()),
  address: optional(text()),
  until: time
})
const lockoutsAnswer = object({ lockouts: list(lockout), total: count })

/** Bounded: an attack may leave many. */
const maxLocks = 1000

const ofNobody = 'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'

const kindNames: Readonly<Record<string, string>> = {
  accountAndAddress: 'account from one address',
  browser: 'known browser'
}

export function addLockoutRoutes(ops: FastifyInstance, desk: Desk): void {
  addRoute(ops, '/lockouts', 'Who is locked out of sign-in.', {
    takes: lockoutsOf,
    answer: lockoutsAnswer,
    run: async query => await listLockouts(desk, query)
  })
  addRoute(ops, '/lockouts/lift', 'Lifts the lockouts of an account or an address.', {
    kind: 'lockouts.lift',
    takes: lockoutsOf,
    answer: object({ lifted: count }),
    run: async body => {
      const wanted = keysOf(body)
      if ((wanted.account ?? wanted.address) === undefined) throw malformed(ofNobody)
      const locked = await locksOf(desk, wanted)
      const keys = new Set([...locked.map(({ key }) => key), ...countedKeys(wanted)])
      await orUnavailable(desk.lockouts.lift([...keys]), 'lockouts')
      return { lifted: locked.length }
    }
  })
}

export async function listLockouts(desk: Desk, query: LockoutsOf = {}): Promise<LockoutsAnswer> {
  const locks = await locksOf(desk, keysOf(query))
  return { lockouts: locks.slice(0, maxLocks).map(toJson), total: locks.length }
}

function keysOf({ account, address }: LockoutsOf): LockoutsOf {
  return {
    ...(account !== undefined && { account: accountKey(account) }),
    ...(address !== undefined && { address: countedAddress({ ip: address }) })
  }
}

/** Challenges are counted as locks are, and lock nobody out. */
async function locksOf({ lockouts }: Desk, wanted: LockoutsOf): Promise<Lock[]> {
  const all = await orUnavailable(lockouts.list(), 'lockouts')
  return all.filter(lock => {
    const { kind, of } = partsOf(lock)
    const isOf = (name: keyof LockoutsOf) => of[name] !== undefined && of[name] === wanted[name]
    const isAsked = (wanted.account ?? wanted.address) === undefined
    return kind !== challenge && (isAsked || isOf('account') || isOf('address'))
  })
}

/** The keys of failures that may not have locked anybody yet: they are forgotten too. */
function countedKeys({ account, address }: LockoutsOf): string[] {
  const keys = [
    ...(account === undefined ? [] : [`account ${account}`, `${challenge} ${account}`]),
    ...(address === undefined ? [] : [`address ${address}`]),
    ...(account && address ? [`accountAndAddress ${account} ${address}`] : [])
  ]
  return keys.flatMap(key => [key, operatorsApart + key])
}

function toJson(lock: Lock): LockoutJson {
  const { kind, of, isOfOperators } = partsOf(lock)
  const place = isOfOperators ? ' at the operators’ page' : ''
  const until = new Date(Date.now() + lock.waitMs).toISOString()
  return { kind: `${kindNames[kind] ?? kind}${place}`, ...of, until }
}
