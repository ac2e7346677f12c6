/** The session's cookie, and cookies of back-ends that the browser keeps encrypted. */
import { fastifyCookie, Signer } from '@fastify/cookie'
import { RecentlyUsed } from '../../bounded-map.ts'
import type { Config } from '../../config/schema/config.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { sealedCookiesOf } from '../../config/schema/route.ts'
import { cookieName, cookieText, decodedCookie } from '../../session/cookie-header.ts'
import { createSeal } from '../../session/seal.ts'
import { keyOf } from '../../session/types.ts'

export type SessionCookie = ReturnType<typeof sessionCookie>

/** `__Host-` binds the cookie to this very host (RFC 6265bis §4.1.3.2); it needs Secure. */
export function sessionCookie({ name, secure, sameSite }: GatewayConfig['session']['cookie']) {
  const partitioned = sameSite === 'none'
  return {
    name: secure ? `__Host-${name}` : name,
    options: { path: '/', secure, httpOnly: true, sameSite, partitioned }
  }
}

/** After a sign-out: an OpenID provider, which may still know the user, asks for the password. */
export const signedOutCookie = 'console_signed_out'

const maxCookies = 10_000

/** Of one as the gateway writes it, with room for what a client may code otherwise. */
const maxLength = 512

/** @returns the key of the session that a `Cookie` header names, with a valid signature */
export function createSessionCookieReader(name: string, secrets: readonly string[]) {
  const signer = new Signer([...secrets])
  const verified = new RecentlyUsed<string>(maxCookies)
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

const maxSealed = 1024
const headerValue = /^[\x21-\x3a\x3c-\x7e]*$/

/** @param secrets newest first: it seals, all open */
export function createSealedCookies(
  { routes }: Config,
  { options }: SessionCookie,
  secrets: readonly string[]
) {
  const seal = createSeal(secrets, 'cookie-of-upstream')
  const prefix = options.secure ? '__Host-' : ''
  const names = new Map(
    Object.keys(routes.upstreams).map(each => [each, sealedCookiesOf(routes, each)])
  )
  return {
    /** By whichever route it is set. */
    isSealed: (upstream: string, name: string): boolean => names.get(upstream)?.has(name) === true,
    /** The pairs of a `Cookie` header that this back-end had set, as it knows them. */
    open: (upstream: string, header: string | undefined, asked: readonly string[]) =>
      asked.flatMap(name => {
        const sealed = decodedCookie(cookieText(header ?? '', prefix + name) ?? '')
        if (sealed.length > maxSealed) return []
        const value = seal.open(`${upstream} ${name}`, sealed) as string | undefined
        return value === undefined ? [] : [`${name}=${value}`]
      }),
    /** The `Set-Cookie` headers for the browser. One that is too long for a cookie is dropped. */
    close: (upstream: string, setCookie: string | string[], asked: readonly string[]) =>
      [setCookie].flat().flatMap(each => {
        const [pair = ''] = each.split(';', 1)
        const name = cookieName(pair)
        const value = pair.slice(pair.indexOf('=') + 1).trim()
        if (!asked.includes(name) || !headerValue.test(value)) return []
        const sealed = seal.close(`${upstream} ${name}`, value)
        if (sealed.length > maxSealed) return []
        return [fastifyCookie.serialize(prefix + name, sealed, options)]
      })
  }
}
