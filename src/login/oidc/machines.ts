/** Access tokens of machines in the place of keys for scripts (RFC 6749 §4.4). */
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { GatewayError } from '../../errors/errors.ts'
import { blocksIn, isBlockOf } from '../../session/blocked-users.ts'
import type { Sessions } from '../../session/sessions.ts'
import { keyOf, type Live, publicId, userDigest } from '../../session/types.ts'
import { steadyNow } from '../../steady-clock.ts'
import { identityOf } from './claims.ts'
import { partOf, providerOf } from './provider.ts'

type Machines = ReturnType<typeof machinesIn>[number]

/** Checks each request's token anew: no store has it, so nobody tells of changes. */
export function createTokenReader(
  sources: GatewayConfig['login']['sources'],
  sessions: Pick<Sessions, 'store'>
) {
  const all = machinesIn(sources)

  /** @throws GatewayError `key.invalid`; `login.blocked*`; `upstream.*` where the provider is away */
  async function verify({ name, config, provider, audience }: Machines, token: string) {
    // The keys are there now, so a failure of the next line is the token's.
    await provider.readKeys()
    const claims = await provider.verify(token, { audience, requiredClaims: ['exp'] }).catch(refuse)
    const identity = identityOf(claims, config)
    const user = { source: name, id: identity.id, username: identity.username }
    if ((await blocksIn(sessions.store)).some(block => isBlockOf(block)(user))) {
      throw new GatewayError('login.blocked-by-operator')
    }
    const key = keyOf(userDigest(user) + token)
    const forMs = Math.max(1000, Number(claims.exp) * 1000 - Date.now())
    const end = steadyNow() + forMs
    const terms = { createdBy: name, forMs }
    const usual = { remembered: false, address: '', agent: '', createdAt: Date.now() }
    const session = { ...usual, identity, source: name, key: terms, id: publicId(key), idleMs: 0 }
    return { session, key, sealed: '', idleEnd: end, absoluteEnd: end }
  }

  return (authorization: string | undefined): (() => Promise<Live>) | undefined => {
    if (all.length === 0 || authorization === undefined) return undefined
    const [, token] = /^bearer +(ey[\w.-]+)$/i.exec(authorization) ?? []
    const machines = token === undefined ? undefined : all.find(each => isFor(token, each))
    if (token === undefined || machines === undefined) return undefined
    return async () => await verify(machines, token)
  }
}

function machinesIn(sources: GatewayConfig['login']['sources']) {
  return Object.entries(sources).flatMap(([name, config]) => {
    if (config.kind !== 'oidc' || config.audience === undefined) return []
    return [{ name, config, audience: config.audience, provider: providerOf(config) }]
  })
}

/** By what the token says of itself: a console's own tokens are none of our business. */
function isFor(token: string, { config: { issuer }, audience }: Machines): boolean {
  try {
    const { iss, aud } = partOf(token, 1)
    return (
      String(iss).replace(/\/$/, '') === issuer.replace(/\/$/, '') &&
      [aud].flat().includes(audience)
    )
  } catch {
    return false
  }
}

function refuse(error: unknown): never {
  const isInvalid = error instanceof GatewayError && error.code === 'upstream.invalid'
  throw isInvalid ? new GatewayError('key.invalid', { cause: error.cause }) : error
}
