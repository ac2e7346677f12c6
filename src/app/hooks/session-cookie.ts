/** The session's cookie in the `Cookie` header of a request. */
import { Signer } from '@fastify/cookie'
import { recentlyUsed } from '../../bounded-map.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { cookieText, decodedCookie } from '../../proxy/cookie-header.ts'
import { keyOf } from '../../session/types.ts'

export type SessionCookie = ReturnType<typeof sessionCookie>

/** `__Host-` binds the cookie to this very host (RFC 6265bis §4.1.3.2); it needs Secure. */
export function sessionCookie({ name, secure, sameSite }: GatewayConfig['session']['cookie']) {
  return {
    name: secure ? `__Host-${name}` : name,
    options: {
      path: '/',
      secure,
      httpOnly: true,
      sameSite,
      partitioned: sameSite === 'none'
    }
  }
}

/**
 * In a browser whose last session ended by a sign-out: at an OpenID provider, which may still know the
 * user, the next sign-in asks for the password. No secret.
 */
export const signedOutCookie = 'console_signed_out'

const maxCookies = 10_000

/** Of one as the gateway writes it, with room for what a client may code otherwise. */
const maxLength = 512

/**
 * Each cookie is verified once.
 * @param secrets a cookie that one of them signed is valid
 * @returns the key of the session that a `Cookie` header names; undefined without a valid signature
 */
export function createSessionCookieReader(name: string, secrets: readonly string[]) {
  const signer = new Signer([...secrets])
  const verified = recentlyUsed<string>(maxCookies)
  return (header: string): string | undefined => {
    const text = cookieText(header, name)
    if (text === undefined) return undefined
    const known = verified.get(text)
    if (known !== undefined) return known
    const { valid, value } = signer.unsign(decodedCookie(text))
    if (!valid || value === null) return undefined
    const key = keyOf(value)
    if (text.length <= maxLength) verified.set(text, key)
    return key
  }
}

/** The value of a session's cookie, as the plugin writes it. */
export function signedCookie(secrets: readonly string[], secretId: string): string {
  return encodeURIComponent(new Signer([...secrets]).sign(secretId))
}

/** A browser has one session: two cookies of the name mean that one was planted. */
export function createAmbiguityCheck(name: string): (header: string) => boolean {
  const occurrences = new RegExp(`(?:^|[;,])[ \\t]*${name}[ \\t]*=[ \\t]*"?([^;]*)`, 'g')
  return header =>
    header.indexOf(name) !== header.lastIndexOf(name) &&
    new Set([...header.matchAll(occurrences)].map(([, value]) => value)).size > 1
}
