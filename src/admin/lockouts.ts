/** `/lockouts` on the operators' listener: lists who is locked out of sign-in, and lifts locks. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { malformed } from '../app/hooks/validation.ts'
import { guardAdminScope } from './browser-guard.ts'
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

/** The current path, and its name in 0.2.0, which is kept for one release. */
const paths = ['/lockouts', '/bans']

export function addOpsLockouts(ops: FastifyInstance, { lockouts, ipv6Prefix, log }: Options): void {
  async function list({ query }: FastifyRequest<{ Querystring: LockoutsOf }>) {
    const selection = selectionOf(query, ipv6Prefix())
    const all = await orUnavailable(lockouts.list())
    const selected = isEmpty(selection) ? all : all.filter(lock => isSelected(lock, selection))
    const shown = selected.slice(0, maxLocks).map(toJson)
    // `bans` is the name that commands of 0.2.0 read.
    return { lockouts: shown, total: selected.length, bans: shown }
  }

  async function lift({ body }: FastifyRequest<{ Body: LockoutsOf }>) {
    const selection = selectionOf(body, ipv6Prefix())
    if (isEmpty(selection)) {
      throw malformed(
        'Name an account or an address: {"account": "NAME"}, {"address": "IP"}, or both.'
      )()
    }
    const { account, address } = selection
    const locked = (await orUnavailable(lockouts.list()))
      .filter(lock => isSelected(lock, selection))
      .map(({ key }) => key)
    // Failures that have not locked yet are forgotten too.
    const counted = [
      ...(account === undefined ? [] : [`account:${account}`]),
      ...(address === undefined ? [] : [`address:${address}`])
    ]
    await orUnavailable(lockouts.lift([...new Set([...locked, ...counted])]))
    log.info(
      {
        event: 'bans.lifted',
        by: 'operator',
        lifted: locked.length,
        ...(account !== undefined && { user: account }),
        ...(address !== undefined && { address })
      },
      'may try to sign in again'
    )
    return { lifted: locked.length }
  }

  ops.register(async scope => {
    guardAdminScope(scope)
    const schemaErrorFormatter = malformed(
      'An account is given by its user name, an address as an IP address.'
    )
    for (const path of paths) {
      scope.get(path, { schema: { querystring: lockoutsOf }, schemaErrorFormatter }, list)
      scope.post(`${path}/lift`, { schema: { body: lockoutsOf }, schemaErrorFormatter }, lift)
    }
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

/** `account:NAME`, `address:IP`, `browser:NAME:ID`. */
function partsOf({ key }: ActiveLock): { kind: string; of: string } {
  const colon = key.indexOf(':')
  const kind = key.slice(0, colon)
  return { kind, of: key.slice(colon + 1, kind === 'browser' ? key.lastIndexOf(':') : undefined) }
}

function isSelected(lock: ActiveLock, { account, address }: Selection): boolean {
  const { kind, of } = partsOf(lock)
  return of === (kind === 'address' ? address : account)
}

function toJson(lock: ActiveLock): LockoutJson {
  const { kind, of } = partsOf(lock)
  return {
    kind: kind === 'browser' ? 'known browser' : kind,
    of,
    until: new Date(lock.until).toISOString()
  }
}
