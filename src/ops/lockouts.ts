/** Lists who is locked out of signing in, and lifts locks. */
import type { FastifyInstance } from 'fastify'
import { countedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { challenge, operatorsApart } from '../app/sign-in/guard.ts'
import type { Lock } from '../limits/lockouts.ts'
import { accountKey } from '../session/types.ts'
import type { Desk } from './desk.ts'
import { addAct, addRead, orUnavailable } from './routes.ts'
import {
  liftAnswer,
  type LockoutJson,
  lockoutsAnswer,
  type LockoutsAnswer,
  lockoutsOf,
  type LockoutsOf
} from './schemas.ts'

/** Bounded: an attack may leave many. */
const maxLocks = 1000

const hint = 'An account is given by its user name, an address as an IP address.'
const ofNobody = 'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'

export function addOpsLockouts(ops: FastifyInstance, { lockouts, log }: Desk) {
  /** As locks name them. */
  const keysOf = ({ account, address }: LockoutsOf): LockoutsOf => ({
    ...(account !== undefined && { account: accountKey(account) }),
    ...(address !== undefined && { address: countedAddress({ ip: address }) })
  })

  /** All that are locked out, or those of an account or an address. */
  async function locksOf(wanted: LockoutsOf) {
    const all = await orUnavailable(lockouts.list(), 'lockouts')
    return all.filter(lock => isWanted(lock, wanted))
  }

  async function list(query: LockoutsOf): Promise<LockoutsAnswer> {
    const locks = await locksOf(keysOf(query))
    return { lockouts: locks.slice(0, maxLocks).map(toJson), total: locks.length }
  }

  async function lift(body: LockoutsOf) {
    const wanted = keysOf(body)
    const { account, address } = wanted
    if (account === undefined && address === undefined) throw malformed(ofNobody)()
    const locked = await locksOf(wanted)
    const keys = new Set([...locked.map(({ key }) => key), ...countedKeys(wanted)])
    await orUnavailable(lockouts.lift([...keys]), 'lockouts')
    const lifted = locked.length
    const fields = { event: 'lockouts.lifted', by: 'operator', lifted, user: account, address }
    log.info(fields, 'may try to sign in again')
    return { lifted }
  }

  addRead(ops, {
    path: '/lockouts',
    summary: 'Who is locked out of sign-in.',
    hint,
    query: lockoutsOf,
    answer: lockoutsAnswer,
    read: list
  })
  addAct(ops, {
    path: '/lockouts/lift',
    kind: 'lockouts.lift',
    summary: 'Lifts the lockouts of an account or an address.',
    hint,
    body: lockoutsOf,
    answer: liftAnswer,
    run: lift
  })
  return { list }
}

/** The keys of failures that may not have locked anybody yet: they are forgotten too. */
function countedKeys({ account, address }: LockoutsOf): string[] {
  const keys = [
    account !== undefined && `account ${account}`,
    account !== undefined && `${challenge} ${account}`,
    address !== undefined && `address ${address}`,
    account !== undefined && address !== undefined && `accountAndAddress ${account} ${address}`
  ]
  return keys.flatMap(key => (key === false ? [] : [key, operatorsApart + key]))
}

/** Of `KIND OF …`, such as `account alice`; a known browser's id is not shown. */
function partsOf({ key }: Lock): LockoutsOf & { readonly kind: string } {
  const [kind = '', first = '', second = ''] = key.split(' ')
  if (kind.endsWith('address')) return { kind, address: first }
  return { kind, account: first, ...(kind !== 'browser' && second !== '' && { address: second }) }
}

/** Challenges are counted as locks are, and lock nobody out. */
function isWanted(lock: Lock, wanted: LockoutsOf): boolean {
  const { kind, account, address } = partsOf(lock)
  if (kind.endsWith(challenge)) return false
  if (wanted.account === undefined && wanted.address === undefined) return true
  return (
    (account !== undefined && account === wanted.account) ||
    (address !== undefined && address === wanted.address)
  )
}

const kindNames: Readonly<Record<string, string>> = {
  accountAndAddress: 'account from one address',
  browser: 'known browser'
}

function toJson(lock: Lock): LockoutJson {
  const { kind: whole, ...of } = partsOf(lock)
  const kind = whole.replace(operatorsApart, '')
  const place = kind === whole ? '' : ' at the operators’ page'
  const until = new Date(Date.now() + lock.waitMs).toISOString()
  return { kind: `${kindNames[kind] ?? kind}${place}`, ...of, until }
}
