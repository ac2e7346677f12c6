/**
 * Cookies of a back-end that the browser keeps encrypted (`setCookies: [{ name, sealed: true }]`):
 * nobody there reads or chooses them, and no other back-end gets them.
 */
import { fastifyCookie } from '@fastify/cookie'
import type { Config } from '../../config/schema/config.ts'
import { sealedCookiesOf } from '../../config/schema/route.ts'
import { cookieName, cookieText, decodedCookie } from '../../proxy/cookie-header.ts'
import { createSeal } from '../../session/seal.ts'
import type { SessionCookie } from '../hooks/session-cookie.ts'

/** Of the sealed value. */
const maxLength = 1024
const headerValue = /^[\x21-\x3a\x3c-\x7e]*$/

/**
 * @param cookie its attributes are used for these cookies too
 * @param secrets newest first: it seals, all open
 */
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
        if (sealed.length > maxLength) return []
        const value = seal.open(`${upstream} ${name}`, sealed)
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
        if (sealed.length > maxLength) return []
        return [fastifyCookie.serialize(prefix + name, sealed, options)]
      })
  }
}
