/** The cookie of operators' sessions: an opaque id, for this host alone. */
import { opsCookie } from '../config/schema/ops.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { GatewayError } from '../errors/errors.ts'
import { keepCookies } from '../proxy/cookie-header.ts'
import { secretIdPattern } from '../session/types.ts'

export interface OperatorCookie {
  readonly name: string
  /** The `Set-Cookie` value that gives the browser a session. */
  readonly give: (secretId: string) => string
  /** The `Set-Cookie` value that takes it back. */
  readonly clear: string
}

/** With TLS, here or at a trusted proxy, the browser binds the cookie to this host (`__Host-`). */
export function operatorCookie({ tls, trustedProxies }: GatewayConfig['ops']): OperatorCookie {
  const isSecure = tls !== undefined || trustedProxies.length > 0
  const name = isSecure ? `__Host-${opsCookie}` : opsCookie
  const attributes = `; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
  return {
    name,
    give: secretId => `${name}=${secretId}${attributes}`,
    clear: `${name}=${attributes}; Max-Age=0`
  }
}

/**
 * The value of the cookie, if it can be one of ours.
 * @throws GatewayError `request.malformed` where there are two: one of them was planted
 */
export function sessionIdOf(header: string | undefined, name: string): string | undefined {
  if (header === undefined || !header.includes(name)) return undefined
  const pairs = keepCookies(header, [name])
  if (pairs.includes(';')) {
    throw new GatewayError('request.malformed', {
      message: 'Two session cookies were sent. Clear the cookies of this host.'
    })
  }
  const value = pairs.slice(name.length + 1)
  return secretIdPattern.test(value) ? value : undefined
}
