/** The operators' desk: who is locked out of sign-in, and letting them try again. */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { createCountedAddress } from '../app/hooks/address.ts'
import { addBrowserGuard } from './browser-guard.ts'
import { accountKey } from '../limits/lockout/account.ts'
import type { ActiveLock, Lockouts } from '../limits/lockout/lockout.ts'

interface Options {
  readonly lockouts: Lockouts
  /** As it is now. */
  readonly ipv6Prefix: () => number
  readonly log: { readonly info: (fields: object, message: string) => void }
}

/** What of it is for people: what names a known browser is not. */
export interface LockoutJson {
  readonly kind: string
  readonly of: string
  readonly until: string
}

/** Whose bans are meant, as they are counted. */
interface Whose {
  readonly account?: string
  readonly address?: string
}

/** An attack may leave many. */
const mostShown = 1000

export function addOpsLockouts(ops: FastifyInstance, { lockouts, ipv6Prefix, log }: Options): void {
  const asked = async <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((cause: unknown) => {
      throw new GatewayError('session.unavailable', {
        cause,
        message: 'Redis, which holds the bans, does not answer. Please try again in a moment.'
      })
    })

  function whoseOf(given: unknown): Whose {
    const { account, address } = (given ?? {}) as { account?: unknown; address?: unknown }
    if (
      (account !== undefined && (typeof account !== 'string' || account === '')) ||
      (address !== undefined && (typeof address !== 'string' || isIP(address) === 0))
    ) {
      throw new GatewayError('request.malformed', {
        message: 'Say whose: an account by its user name, an address as an IP address.'
      })
    }
    return {
      ...(account !== undefined && { account: accountKey(account) }),
      ...(address !== undefined && { address: createCountedAddress(ipv6Prefix())({ ip: address }) })
    }
  }

  ops.register(async scope => {
    addBrowserGuard(scope)

    scope.get('/bans', async request => {
      const whose = whoseOf(request.query)
      const all = await asked(lockouts.list())
      const found = Object.keys(whose).length === 0 ? all : all.filter(ban => isOf(ban, whose))
      return { bans: found.slice(0, mostShown).map(show), total: found.length }
    })

    scope.post('/bans/lift', async request => {
      const whose = whoseOf(request.body)
      const { account, address } = whose
      if (account === undefined && address === undefined) {
        throw new GatewayError('request.malformed', {
          message: 'Say whose: {"account": "NAME"}, {"address": "IP"}, or both.'
        })
      }
      const locked = (await asked(lockouts.list()))
        .filter(ban => isOf(ban, whose))
        .map(({ key }) => key)
      // Failures that have not locked yet are forgotten too.
      const own = [
        ...(account === undefined ? [] : [`account:${account}`]),
        ...(address === undefined ? [] : [`address:${address}`])
      ]
      await asked(lockouts.lift([...new Set([...locked, ...own])]))
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
    })
  })
}

/** `account:NAME`, `address:IP`, `browser:NAME:ID`. */
function partsOf({ key }: ActiveLock): { kind: string; of: string } {
  const colon = key.indexOf(':')
  const kind = key.slice(0, colon)
  return { kind, of: key.slice(colon + 1, kind === 'browser' ? key.lastIndexOf(':') : undefined) }
}

function isOf(ban: ActiveLock, { account, address }: Whose): boolean {
  const { kind, of } = partsOf(ban)
  return of === (kind === 'address' ? address : account)
}

function show(ban: ActiveLock): LockoutJson {
  const { kind, of } = partsOf(ban)
  return {
    kind: kind === 'browser' ? 'known browser' : kind,
    of,
    until: new Date(ban.until).toISOString()
  }
}
