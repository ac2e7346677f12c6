/**
 * The session of an operator in a browser: a sealed cookie of one hour, and no store. At each
 * request it is held against what is true then: so it ends with the password, the role, a block or
 * a sign-out.
 */
import { randomUUID } from 'node:crypto'
import { type GatewayConfig, operatorSources } from '../config/schema/gateway.ts'
import { opsCookie } from '../config/schema/ops.ts'
import type { Services } from '../services/services.ts'
import { type BlockedName, isBlockOf } from '../session/blocked-users.ts'
import { createSeal } from '../session/seal.ts'
import { type Identity, type SignedIn, userDigest } from '../session/types.ts'
import { digest } from './access.ts'
import type { Operator } from './operator.ts'

/** Whoever signs in. */
export interface Entrant {
  readonly name: string
  /** Undefined for the operators' secret, and for links. */
  readonly user?: {
    readonly identity: Identity
    readonly source: string
    /** A digest of the password's hash in the users file; undefined for other sources. */
    readonly password?: string | undefined
  }
}

/** What the cookie holds. */
interface Pass extends Entrant {
  readonly until: number
  /** Of the operator, when the cookie was given. */
  readonly signOuts: number
}

interface Options {
  readonly gateway: GatewayConfig
  readonly services: Pick<Services, 'secrets' | 'fileUsers' | 'signOuts' | 'sessions' | 'redis'>
  /** Tells other replicas of sign-outs, and hears of theirs. */
  readonly exchange: () => Promise<void>
}

const lifeMs = 3_600_000

export type OperatorSessions = ReturnType<typeof createOperatorSessions>

export function createOperatorSessions({ gateway, services, exchange }: Options) {
  const { fileUsers, signOuts, sessions, redis } = services
  const { role, tls, trustedProxies, secret = '' } = gateway.ops
  const sources = operatorSources(gateway)
  // A new secret ends all. Without Redis nobody else knows of sign-outs: they end with this process.
  const purpose = redis === undefined ? randomUUID() : digest(secret).toString('base64url')
  const seal = createSeal(services.secrets, `operator ${purpose}`)
  // With TLS, here or at a trusted proxy, the browser binds the cookie to this host.
  const isSecure = tls !== undefined || trustedProxies.length > 0
  const cookie = isSecure ? `__Host-${opsCookie}` : opsCookie
  const attributes = `; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  let blocks: readonly BlockedName[] = []

  async function isBlocked(user: SignedIn): Promise<boolean> {
    // Operators go on while Redis is away: the blocks of before hold.
    blocks = await sessions.store.blocked().catch(() => blocks)
    return blocks.some(block => isBlockOf(block)(user))
  }

  /** Whether an entrant is an operator now. */
  async function isOperator({ user }: Entrant): Promise<boolean> {
    if (user === undefined) return true
    const { identity, source } = user
    if (role === undefined || !sources.includes(source)) return false
    if (fileUsers.review(user)?.identity.roles.includes(role) !== true) return false
    return !(await isBlocked({ source, id: identity.id, username: identity.username }))
  }

  return {
    /** The name of the cookie. */
    cookie,
    /** Whether browsers come by https. */
    isSecure,
    isOperator,
    /** The operator of a cookie, who still is one. */
    operatorOf: async (value: string): Promise<Operator | undefined> => {
      const text = seal.open(cookie, value)
      if (text === undefined) return undefined
      const pass = JSON.parse(text) as Pass
      const { name, until, user } = pass
      if (until <= Date.now() || pass.signOuts < signOuts.of(keyOf(name, user?.source))) {
        return undefined
      }
      if (!(await isOperator(pass))) return undefined
      return { name, via: 'session', source: user?.source, until }
    },
    /** @returns the `Set-Cookie` value */
    open: async ({ name, user }: Entrant): Promise<string> => {
      // A sign-out at another replica must not end what begins after it.
      await exchange()
      const pass: Pass = {
        name,
        ...(user && { user: { ...user, identity: essentialsOf(user.identity, role) } }),
        until: Date.now() + lifeMs,
        signOuts: signOuts.of(keyOf(name, user?.source))
      }
      return `${cookie}=${seal.close(cookie, JSON.stringify(pass))}${attributes}`
    },
    /** Ends all sessions of an operator, at each replica within a second. */
    close: async ({ name, source }: Operator): Promise<string> => {
      signOuts.add(keyOf(name, source))
      await exchange()
      return `${cookie}=${attributes}; Max-Age=0`
    }
  }
}

/** Browsers keep 4 KiB of a cookie. */
function essentialsOf({ id, username, name, roles }: Identity, role: string | undefined): Identity {
  return { id, username, name, roles: roles.filter(each => each === role), profile: {} }
}

function keyOf(name: string, source = ''): string {
  return userDigest({ source, id: name })
}
