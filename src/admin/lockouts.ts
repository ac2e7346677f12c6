/** `/lockouts` on the operators' listener: lists who is locked out of sign-in, and lifts locks. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import { accountKey } from '../limits/lockout/account.ts'
import type { ActiveLock, Lockouts } from '../limits/lockout/lockout.ts'
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
  readonly of: string
  readonly until: string
}

/** Selects locks by account key and counted address; an empty one selects all. */
interface Selection {
  readonly account?: string
  readonly address?: string
}

/** Bounded: an attack may leave many. */
const maxLocks = 1000

export function addOpsLockouts(ops: FastifyInstance, { lockouts, ipv6Prefix, log }: Options): void {
  async function list({ query }: FastifyRequest<{ Querystring: LockoutsOf }>) {
    const selection = selectionOf(query, ipv6Prefix())
    const all = await orUnavailable(lockouts.list())
    const selected = isEmpty(selection) ? all : all.filter(lock => isSelected(lock, selection))
    const shown = selected.slice(0, maxLocks).map(toJson)
    return { lockouts: shown, total: selected.length }
  }

  async function locksOf(body: LockoutsOf) {
    const selection = selectionOf(body, ipv6Prefix())
    if (isEmpty(selection)) {
      throw malformed(
        'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'
      )()
    }
    const locked = (await orUnavailable(lockouts.list())).filter(lock =>
      isSelected(lock, selection)
    )
    return { ...selection, locked }
  }

  async function lift(body: LockoutsOf) {
    const { account, address, locked } = await locksOf(body)
    // Failures that have not locked yet are forgotten too.
    const counted = [
      ...(account === undefined ? [] : [`account:${account}`, `ops-account:${account}`]),
      ...(address === undefined ? [] : [`address:${address}`, `ops-address:${address}`])
    ]
    const keys = locked.map(({ key }) => key)
    await orUnavailable(lockouts.lift([...new Set([...keys, ...counted])]))
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
    scope.get('/lockouts', { schema, schemaErrorFormatter: malformed(hint) }, list)
    addAct(scope, {
      path: '/lockouts/lift',
      kind: 'lockouts.lift',
      summary: 'Lifts the lockouts of an account or an address.',
      body: lockoutsOf,
      hint,
      preview: async body => ({ lockouts: (await locksOf(body)).locked.length }),
      run: lift,
      undo: undefined
    })
  })
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

/**
 * `account:NAME`, `address:IP`, `browser:NAME:ID`; of the operators' page `ops-account:NAME`,
 * `ops-address:IP`.
 */
function partsOf({ key }: ActiveLock): { kind: string; of: string } {
  const colon = key.indexOf(':')
  const kind = key.slice(0, colon)
  return { kind, of: key.slice(colon + 1, kind === 'browser' ? key.lastIndexOf(':') : undefined) }
}

const kindNames: Readonly<Record<string, string>> = {
  'browser': 'known browser',
  'ops-account': 'account at the operators’ page',
  'ops-address': 'address at the operators’ page'
}

function isSelected(lock: ActiveLock, { account, address }: Selection): boolean {
  const { kind, of } = partsOf(lock)
  return of === (kind.endsWith('address') ? address : account)
}

function toJson(lock: ActiveLock): LockoutJson {
  const { kind, of } = partsOf(lock)
  return {
    kind: kindNames[kind] ?? kind,
    of,
    until: new Date(lock.until).toISOString()
  }
}
