/** `/lockouts` on the operators' listener: lists who is locked out of sign-in, and lifts locks. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors/errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { challenge, operatorsApart } from '../app/sign-in/guard.ts'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import type { Lock, Lockouts } from '../limits/lockouts.ts'
import { accountKey } from '../session/types.ts'
import { lockoutsOf, type LockoutsOf } from './request-schemas.ts'

interface Options {
  readonly lockouts: Lockouts
  /** Of the config in force. */
  readonly ipv6Prefix: () => number
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** A lock as JSON for people, without the id that names a known browser. */
export interface LockoutJson {
  readonly kind: string
  readonly account?: string
  readonly address?: string
  readonly until: string
}

/** Selects locks by account key and counted address; an empty one selects all. */
interface Selection {
  readonly account?: string
  readonly address?: string
}

/** Bounded: an attack may leave many. */
const maxLocks = 1000

export function addOpsLockouts(ops: FastifyInstance, { lockouts, ipv6Prefix, log }: Options) {
  /** All that are locked out, or those of a selection. */
  async function locksOf(selection: Selection) {
    const locks = (await orUnavailable(lockouts.list())).filter(lock => !isChallenge(lock))
    return isEmpty(selection) ? locks : locks.filter(lock => isSelected(lock, selection))
  }

  async function list(of: LockoutsOf) {
    const locks = await locksOf(selectionOf(of, ipv6Prefix()))
    return { lockouts: locks.slice(0, maxLocks).map(toJson), total: locks.length }
  }

  async function lift(body: LockoutsOf) {
    const selection = selectionOf(body, ipv6Prefix())
    if (isEmpty(selection)) {
      throw malformed(
        'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'
      )()
    }
    const locked = await locksOf(selection)
    const { account, address } = selection
    const keys = [...locked.map(({ key }) => key), ...countedKeys(selection)]
    await orUnavailable(lockouts.lift([...new Set(keys)]))
    log.info(
      {
        event: 'lockouts.lifted',
        by: 'operator',
        lifted: locked.length,
        ...(account !== undefined && { user: account }),
        ...(address !== undefined && { address })
      },
      'may try to sign in again'
    )
    return { lifted: locked.length }
  }

  addOpsScope(ops, scope => {
    const hint = 'An account is given by its user name, an address as an IP address.'
    const schema = { summary: 'Who is locked out of sign-in.', querystring: lockoutsOf }
    scope.get<{ Querystring: LockoutsOf }>(
      '/lockouts',
      { schema, schemaErrorFormatter: malformed(hint) },
      async ({ query }) => await list(query)
    )
    addAct(scope, {
      path: '/lockouts/lift',
      kind: 'lockouts.lift',
      summary: 'Lifts the lockouts of an account or an address.',
      body: lockoutsOf,
      hint,
      run: lift
    })
  })
  return { list }
}

async function orUnavailable<T>(result: Promise<T>): Promise<T> {
  return result.catch((cause: unknown) => {
    throw new GatewayError('session.unavailable', {
      cause,
      message: 'Redis, which holds the lockouts, does not answer. Please try again in a moment.'
    })
  })
}

function selectionOf({ account, address }: LockoutsOf, ipv6Prefix: number): Selection {
  return {
    ...(account !== undefined && { account: accountKey(account) }),
    ...(address !== undefined && { address: createCountedAddress(ipv6Prefix)({ ip: address }) })
  }
}

function isEmpty({ account, address }: Selection): boolean {
  return account === undefined && address === undefined
}

/** The keys of failures that may not have locked anybody yet: they are forgotten too. */
function countedKeys({ account, address }: Selection): string[] {
  return ['', operatorsApart].flatMap(apart => [
    ...(account === undefined
      ? []
      : [`${apart}account ${account}`, `${apart}${challenge} ${account}`]),
    ...(address === undefined ? [] : [`${apart}address ${address}`]),
    ...(account === undefined || address === undefined
      ? []
      : [`${apart}accountAndAddress ${account} ${address}`])
  ])
}

/** Of `KIND OF …`, such as `account alice`; a known browser's id is not shown. */
function partsOf({ key }: Lock): Selection & { readonly kind: string } {
  const [kind = '', first = '', second = ''] = key.split(' ')
  if (kind.endsWith('address')) return { kind, address: first }
  return { kind, account: first, ...(kind !== 'browser' && second !== '' && { address: second }) }
}

function isChallenge(lock: Lock): boolean {
  return partsOf(lock).kind.endsWith(challenge)
}

const kindNames: Readonly<Record<string, string>> = {
  'accountAndAddress': 'account from one address',
  'browser': 'known browser',
  'ops-account': 'account at the operators’ page',
  'ops-address': 'address at the operators’ page',
  'ops-accountAndAddress': 'account from one address at the operators’ page'
}

function isSelected(lock: Lock, selection: Selection): boolean {
  const { account, address } = partsOf(lock)
  return (
    (account !== undefined && account === selection.account) ||
    (address !== undefined && address === selection.address)
  )
}

function toJson(lock: Lock): LockoutJson {
  const { kind, ...of } = partsOf(lock)
  const until = new Date(Date.now() + lock.waitMs).toISOString()
  return { kind: kindNames[kind] ?? kind, ...of, until }
}
