/** Keys for scripts: sessions that an operator opens, and that no cookie names. */
import { keySource } from '../config/schema/login.ts'
import { GatewayError } from '../errors/errors.ts'
import { wallTime } from '../steady-clock.ts'
import type { Sessions } from './sessions.ts'
import { createSecretId, keyOf, type KeyTerms, type Live, type SignedIn } from './types.ts'

/** Scanners for leaked secrets look for it. */
const prefix = 'cgk_'
/** The store has it under another name than a cookie with the same id: what a cookie holds is no key. */
const named = (secretId: string) => secretId + prefix
const maxListed = 10_000
/** Stores count in whole milliseconds. */
const roundingMs = 100

interface NewKey extends KeyTerms {
  readonly name: string
  readonly roles: readonly string[]
  readonly address: string
}

/** Not the name alone: no back-end may take a key `admin` for the user `admin`. */
function userOf(name: string): SignedIn {
  const id = `key:${name}`
  return { source: keySource, id, username: id }
}

/** The name in the store of a key (RFC 6750 §2.1): empty for what can be none. */
export function keyIn(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [, secretId] = /^bearer +cgk_(.*)$/i.exec(authorization) ?? []
  if (secretId === undefined) return undefined
  return /^[\w-]{48}$/.test(secretId) ? keyOf(named(secretId)) : ''
}

/** The key is shown this once. @throws GatewayError `login.too-many` where a key has the name */
export async function createKey(sessions: Sessions, newKey: NewKey) {
  const { name, roles, address, createdBy, forMs } = newKey
  const user = userOf(name)
  const secretId = createSecretId(user)
  const identity = { ...user, name, roles, profile: {} }
  const of = { identity, source: keySource, remembered: false, address, agent: '' }
  try {
    const live = await sessions.open(named(secretId), { ...of, key: { createdBy, forMs } })
    return { key: prefix + secretId, ...describe(live) }
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === 'login.too-many')) throw error
    const message = `There is a key "${name}". Revoke it first, or choose another name.`
    throw new GatewayError(error.code, { message })
  }
}

export async function listKeys(sessions: Sessions) {
  const { users } = await sessions.store.signedIn(maxListed, 'keys')
  const lists = await Promise.all(users.map(async user => await sessions.list(user)))
  const keys = lists.flat().map(describe)
  return keys.toSorted((a, b) => a.name.localeCompare(b.name))
}

export async function revokeKey(sessions: Sessions, name: string): Promise<boolean> {
  return (await sessions.endOf(userOf(name))).closed > 0
}

function describe({ session, idleEnd, absoluteEnd }: Live) {
  const { identity, createdAt, idleMs, key } = session
  const iso = (ms: number) => new Date(ms).toISOString()
  // The idle end of a key that was never used is before its absolute end.
  const isUsed = idleEnd + roundingMs > absoluteEnd
  return {
    name: identity.name,
    roles: [...identity.roles],
    createdBy: key?.createdBy ?? '',
    createdAt: iso(createdAt),
    expiresAt: iso(wallTime(absoluteEnd)),
    ...(isUsed && { lastUsedAt: iso(wallTime(idleEnd - idleMs)) })
  }
}
