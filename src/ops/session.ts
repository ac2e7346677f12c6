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
  readonly identity: Identity
  /** The credential source; undefined for the operators' secret, and for links. */
  readonly source?: string
  /** A digest of the password's hash in the users file; undefined for other sources. */
  readonly password?: string | undefined
}

/** What the cookie holds. */
interface Pass extends Entrant {
  readonly until: number
  /** Of the operator, when the cookie was given. */
  readonly signOuts: number
  /** A digest of the operators' secret, without a source. */
  readonly secret?: string
}

interface Options {
  readonly gateway: GatewayConfig
  readonly secret: string
  readonly services: Pick<Services, 'secrets' | 'fileUsers' | 'signOuts' | 'sessions' | 'redis'>
  /** Tells other replicas of sign-outs, and hears of theirs. */
  readonly exchange: () => Promise<void>
}

const lifeMs = 3_600_000

export type OperatorSessions = ReturnType<typeof createOperatorSessions>

export function createOperatorSessions({ gateway, secret, services, exchange }: Options) {
  const { fileUsers, signOuts, sessions, redis } = services
  const { role, tls, trustedProxies } = gateway.ops
  const sources = operatorSources(gateway)
  // Without Redis nobody else knows of sign-outs, so the cookies end with this process.
  const purpose = redis === undefined ? `operator ${randomUUID()}` : 'operator'
  const seal = createSeal(services.secrets, purpose)
  const ofSecret = digest(secret).toString('base64url')
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

  /** Whether the user of a source is an operator now. */
  async function isOperator({ identity, source, password }: Entrant): Promise<boolean> {
    if (source === undefined || role === undefined || !sources.includes(source)) return false
    const current = fileUsers.review({ source, identity, password })
    if (current?.identity.roles.includes(role) !== true) return false
    return !(await isBlocked({ source, id: identity.id, username: identity.username }))
  }

  return {
    /** The name of the cookie. */
    cookie,
    isOperator,
    /** The operator of a cookie, who still is one. */
    operatorOf: async (value: string): Promise<Operator | undefined> => {
      const text = seal.open(cookie, value)
      if (text === undefined) return undefined
      const pass = JSON.parse(text) as Pass
      if (pass.until <= Date.now()) return undefined
      const operator = shown(pass)
      if (pass.signOuts < signOuts.of(keyOf(operator))) return undefined
      const isStill = pass.source === undefined ? pass.secret === ofSecret : await isOperator(pass)
      return isStill ? operator : undefined
    },
    /** @returns the operator, and the `Set-Cookie` value */
    open: async (entrant: Entrant): Promise<{ operator: Operator; setCookie: string }> => {
      // A sign-out at another replica must not end what begins after it.
      await exchange()
      const { id, username, name, roles } = entrant.identity
      const pass: Pass = {
        ...entrant,
        // Browsers keep 4 KiB of a cookie.
        identity: { id, username, name, roles: roles.filter(each => each === role), profile: {} },
        until: Date.now() + lifeMs,
        signOuts: signOuts.of(keyOf({ name: username, source: entrant.source })),
        ...(entrant.source === undefined && { secret: ofSecret })
      }
      const sealed = seal.close(cookie, JSON.stringify(pass))
      return { operator: shown(pass), setCookie: `${cookie}=${sealed}${attributes}` }
    },
    /** Ends all sessions of an operator, at each replica within a second. */
    close: async (operator: Operator): Promise<{ setCookie: string }> => {
      signOuts.add(keyOf(operator))
      await exchange()
      return { setCookie: `${cookie}=${attributes}; Max-Age=0` }
    }
  }
}

function keyOf({ source = '', name }: Pick<Operator, 'name' | 'source'>): string {
  return userDigest({ source, id: name })
}

function shown({ identity, source, until }: Pass): Operator {
  return { name: identity.username, via: 'session', source, until }
}
