/** Who vouches for an operator, and the session that follows. */
import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Gateway } from '../app/gateway.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { createSignInGuard } from '../app/sign-in/guard.ts'
import { mustVouch } from '../app/sign-in/vouching.ts'
import { type GatewayConfig, operatorSources } from '../config/schema/gateway.ts'
import { opsCookie } from '../config/schema/server.ts'
import { GatewayError } from '../errors/errors.ts'
import { operatorsApart } from '../limits/lockouts.ts'
import { signOutAtSource, takesPasswords } from '../login/credential-source.ts'
import { OidcSource } from '../login/oidc/source.ts'
import type { Services } from '../services/services.ts'
import type { Background } from '../services/shared.ts'
import { type BlockedName, blocksIn, isBlockOf } from '../session/blocked-users.ts'
import { createSeal } from '../session/seal.ts'
import { type Identity, type Session, type SignedIn, userDigest } from '../session/types.ts'
import { digest } from './access.ts'
import type { Operator } from './operator.ts'

export interface Entrant {
  readonly name: string
  /** Undefined for the operators' secret, and for links. */
  readonly user?: Pick<Session, 'identity' | 'source' | 'password'>
}

interface Pass extends Entrant {
  readonly until: number
  /** Of the operator, when the cookie was given. */
  readonly signOuts: number
}

type Used = Pick<Services, 'secrets' | 'fileUsers' | 'sessions' | 'redis' | 'background'>

const lifeMs = 3_600_000

export type OperatorSessions = ReturnType<typeof createOperatorSessions>

/**
 * A session is a sealed cookie of one hour, and no store. Each request holds it against what is
 * true then: it ends with the password, the role, a block or a sign-out.
 */
export function createOperatorSessions(gateway: GatewayConfig, services: Used) {
  const { fileUsers, sessions, redis } = services
  const signOuts = createSignOuts(services.background)
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
    blocks = await blocksIn(sessions.store).catch(() => blocks)
    return blocks.some(block => isBlockOf(block)(user))
  }

  async function isOperator({ user }: Entrant): Promise<boolean> {
    if (user === undefined) return true
    const { identity, source } = user
    if (role === undefined || !sources.includes(source)) return false
    if (fileUsers.review(user)?.identity.roles.includes(role) !== true) return false
    return !(await isBlocked({ source, id: identity.id, username: identity.username }))
  }

  return {
    cookie,
    isSecure,
    isOperator,
    operatorOf: async (value: string): Promise<Operator | undefined> => {
      const pass = seal.open(cookie, value) as Pass | undefined
      if (pass === undefined || pass.until <= Date.now()) return undefined
      if (!(await isOperator(pass))) return undefined
      const { name, until, user } = pass
      if (pass.signOuts < (await signOuts.of(keyOf(name, user?.source)))) return undefined
      return { name, via: 'session', source: user?.source, until }
    },
    open: async ({ name, user }: Entrant): Promise<string> => {
      const pass: Pass = {
        name,
        ...(user && { user: { ...user, identity: essentialsOf(user.identity, role) } }),
        until: Date.now() + lifeMs,
        signOuts: await signOuts.of(keyOf(name, user?.source))
      }
      return `${cookie}=${seal.close(cookie, pass)}${attributes}`
    },
    /** Ends all sessions of an operator. @throws GatewayError where other replicas cannot know */
    close: async ({ name, source }: Operator): Promise<string> => {
      await signOuts.add(keyOf(name, source))
      return `${cookie}=${attributes}; Max-Age=0`
    }
  }
}

/** How often each operator has signed out, at any replica: a cookie of before opens nothing. */
function createSignOuts({ redis, prefix }: Background) {
  const key = `${prefix}operator-sign-outs`
  /** As far as is known here: they hold while Redis is away. */
  const counts = new Map<string, number>()

  async function of(operator: string): Promise<number> {
    const known = counts.get(operator) ?? 0
    const shared = await redis?.zscore(key, operator).catch(() => null)
    const count = Math.max(known, Number(shared ?? 0))
    if (count > known) counts.set(operator, count)
    return count
  }

  async function add(operator: string): Promise<void> {
    const count = (await of(operator)) + 1
    counts.set(operator, count)
    try {
      await redis?.zadd(key, count, operator)
      await redis?.pexpire(key, 2 * lifeMs)
    } catch (cause) {
      throw new GatewayError('ops.redis', { cause })
    }
  }

  return { of, add }
}

/** Browsers keep 4 KiB of a cookie. */
function essentialsOf({ id, username, name, roles }: Identity, role: string | undefined): Identity {
  return { id, username, name, roles: roles.filter(each => each === role), profile: {} }
}

function keyOf(name: string, source = ''): string {
  return userDigest({ source, id: name })
}

export type Vouching = ReturnType<typeof createVouching>

/**
 * By a source of `ops.sources`, or the operators' secret. Guesses at the console lock no operator
 * out of the page, and the reverse.
 */
export function createVouching(gateway: Gateway) {
  const { sessions, config, sourceFaults } = gateway
  const names = operatorSources(config.gateway)
  const ofOperators = gateway.sources.filter(({ name }) => names.includes(name))
  const sources = ofOperators.filter(takesPasswords)
  const guard = createSignInGuard(gateway, operatorsApart)
  return {
    takesPasswords: sources.length > 0,
    providers: ofOperators.filter(each => each instanceof OidcSource),
    /** @throws GatewayError for a wrong password, a lockout, or a user who is no operator */
    user: async (
      request: FastifyRequest,
      { username, password }: Readonly<Record<'username' | 'password', string>>,
      isOperator: (entrant: Entrant) => Promise<boolean>,
      leaving: AbortSignal
    ): Promise<Entrant> => {
      const attempt = await guard(request, username, leaving)
      const address = clientAddress(request)
      const signingIn = { username, password, extra: {}, address, requestId: request.id }
      const session = await mustVouch(sources, signingIn, attempt, {
        log: request.log,
        sourceFaults
      })
      // The gateway alone needs to know the user: a session of the back-end is not kept.
      signOutAtSource({ sources, sessions }, session, request)
      const { identity, password: hash, source } = session
      const user = { identity, source, ...(hash !== undefined && { password: hash }) }
      const entrant = { name: identity.username, user }
      if (!(await isOperator(entrant))) {
        // Counted: else whoever has a console account could have passwords checked without end.
        attempt.refused()
        throw new GatewayError('ops.role')
      }
      await attempt.refund()
      leaving.throwIfAborted()
      return entrant
    },
    secret: async (request: FastifyRequest, isRight: boolean, leaving: AbortSignal) => {
      const attempt = await guard(request, 'the operators’ secret', leaving)
      if (isRight) return await attempt.refund()
      attempt.refused()
      throw new GatewayError('login.refused', { message: 'The secret is wrong.' })
    }
  }
}
