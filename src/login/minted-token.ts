/** JSON Web Tokens that the gateway signs (RFC 7519, RFC 7515, RFC 7518 §3). */
import { createHmac, createPrivateKey, createPublicKey, hash, randomUUID, sign } from 'node:crypto'
import type { JwtConfig } from '../config/schema/upstreams.ts'
import type { Credential, Session } from '../session/types.ts'
import { steadyNow } from '../steady-clock.ts'

type Claims = Readonly<Record<string, unknown>>

const lifetimeSeconds = 60

export function createMint(config: JwtConfig, claimsOf: (session: Session) => Claims) {
  const { secret = '', keys = [] } = config
  const signer = keys[0] === undefined ? hs256(secret) : es256(keys[0])
  const prefix = `${encode({ ...signer.header, typ: 'JWT' })}.`
  // By the object: a session that was read anew may have other roles.
  const minted = new WeakMap<Session, { readonly credential: Credential; readonly until: number }>()

  function mint(session: Session): Credential {
    const iat = Math.floor(Date.now() / 1000)
    const times = { iat, exp: iat + lifetimeSeconds }
    const input = prefix + encode({ ...claimsOf(session), ...times, jti: randomUUID() })
    return { token: `${input}.${signer.sign(input).toString('base64url')}` }
  }

  return {
    /** A token of which half the life is left at least. */
    tokenOf: (session: Session): Credential => {
      const known = minted.get(session)
      if (known !== undefined && steadyNow() < known.until) return known.credential
      const credential = mint(session)
      minted.set(session, { credential, until: steadyNow() + (lifetimeSeconds / 2) * 1000 })
      return credential
    },
    publicKeys: keys.map(publicKeyOf)
  }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

function hs256(secret: string) {
  return {
    header: { alg: 'HS256' },
    sign: (input: string) => createHmac('sha256', secret).update(input).digest()
  }
}

function es256(pem: string) {
  const key = createPrivateKey(pem)
  return {
    header: { alg: 'ES256', kid: publicKeyOf(pem).kid },
    sign: (input: string) => sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  }
}

/** Its id is its thumbprint (RFC 7638). */
function publicKeyOf(pem: string) {
  const { crv, kty, x, y } = createPublicKey(pem).export({ format: 'jwk' })
  const kid = hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url')
  return { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' }
}
