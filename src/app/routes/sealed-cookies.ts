/**
 * Cookies of a back-end that the browser keeps encrypted (`setCookies: [{ name, sealed: true }]`):
 * nobody there reads or chooses them, and no other back-end gets them.
 */
import { fastifyCookie } from '@fastify/cookie'
import type { Config } from '../../config/schema/config.ts'
import { sealedCookiesOf } from '../../config/schema/set-cookies.ts'
import { cookieName, cookieText, decodedCookie } from '../../proxy/cookie-header.ts'
import { createSeal, type Seal } from '../../session/seal.ts'
import type { SessionCookie } from '../hooks/session-cookie.ts'

/** Of the sealed value. */
const maxLength = 1024
const headerValue = /^[\x21-\x3a\x3c-\x7e]*$/

/** Those of one back-end. @param cookie its attributes are used for these cookies too */
function sealedCookies(
  upstream: string,
  names: ReadonlySet<string>,
  seal: Seal,
  { options }: SessionCookie
) {
  const prefix = options.secure ? '__Host-' : ''
  return {
    /** By whichever route they are set. */
    names,
    /** The pairs of a `Cookie` header that this back-end had set, as it knows them. */
    open: (header: string | undefined = '', asked: readonly string[]) =>
      asked.flatMap(name => {
        const sealed = decodedCookie(cookieText(header, prefix + name) ?? '')
        if (sealed.length > maxLength) return []
        const value = seal.open(`${upstream} ${name}`, sealed)
        return value === undefined ? [] : [`${name}=${value}`]
      }),
    /** The `Set-Cookie` headers for the browser. One that is too long for a cookie is dropped. */
    close: (setCookie: string | string[] | undefined = [], asked: readonly string[]) =>
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

/** By the name of the upstream. @param secrets newest first: it seals, all open */
export function createSealedCookies(
  { routes }: Config,
  cookie: SessionCookie,
  secrets: readonly string[]
): ReadonlyMap<string, ReturnType<typeof sealedCookies>> {
  const seal = createSeal(secrets, 'cookie-of-upstream')
  return new Map(
    Object.keys(routes.upstreams).flatMap(upstream => {
      const names = sealedCookiesOf(routes, upstream)
      return names.size === 0 ? [] : [[upstream, sealedCookies(upstream, names, seal, cookie)]]
    })
  )
}
