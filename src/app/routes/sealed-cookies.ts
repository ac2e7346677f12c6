/**
 * Cookies of a back-end that the browser keeps encrypted (`setCookies: [{ name, sealed: true }]`):
 * nobody there reads or chooses them, and no other back-end gets them.
 */
import type { Config } from '../../config/schema/config.ts'
import { sealedCookiesOf } from '../../config/schema/set-cookies.ts'
import { cookieName, cookieText, decodedCookie } from '../../proxy/cookie-header.ts'
import { createSeal, type Seal } from '../../session/seal.ts'
import type { SessionCookie } from '../hooks/session.ts'

/** Of the sealed value. */
const maxLength = 1024
const headerValue = /^[\x21-\x3a\x3c-\x7e]*$/

interface Options {
  readonly upstream: string
  readonly names: ReadonlySet<string>
  readonly seal: Seal
  /** Its attributes are used for these cookies too. */
  readonly cookie: SessionCookie
}

export class SealedCookies {
  /** Of this back-end's cookies, by whichever route they are set. */
  readonly names: ReadonlySet<string>
  readonly #options: Options
  readonly #prefix: string

  constructor(options: Options) {
    this.#options = options
    this.names = options.names
    this.#prefix = options.cookie.options.secure ? '__Host-' : ''
  }

  /** The pairs of a `Cookie` header that this back-end had set, as it knows them. */
  open(header: string | undefined, names: readonly string[]): string[] {
    if (header === undefined) return []
    return names.flatMap(name => {
      const sealed = decodedCookie(cookieText(header, this.#prefix + name) ?? '')
      if (sealed.length > maxLength) return []
      const value = this.#options.seal.open(this.#purpose(name), sealed)
      return value === undefined ? [] : [`${name}=${value}`]
    })
  }

  /** The `Set-Cookie` headers for the browser. One that is too long for a cookie is dropped. */
  close(setCookie: string | string[] | undefined, names: readonly string[]): string[] {
    return [setCookie ?? []].flat().flatMap(each => {
      const [pair = ''] = each.split(';', 1)
      const name = cookieName(pair)
      const value = pair.slice(pair.indexOf('=') + 1).trim()
      if (!names.includes(name) || !headerValue.test(value)) return []
      const sealed = this.#options.seal.close(this.#purpose(name), value)
      return sealed.length > maxLength ? [] : [this.#format(name, sealed)]
    })
  }

  #purpose(name: string): string {
    return `${this.#options.upstream} ${name}`
  }

  #format(name: string, sealed: string): string {
    const { path, secure, sameSite, partitioned } = this.#options.cookie.options
    return [
      `${this.#prefix}${name}=${sealed}`,
      `Path=${path}`,
      'HttpOnly',
      ...(secure ? ['Secure'] : []),
      `SameSite=${sameSite}`,
      ...(partitioned ? ['Partitioned'] : [])
    ].join('; ')
  }
}

/** By the name of the upstream. */
export type SealedCookiesOf = ReadonlyMap<string, SealedCookies>

/** @param secrets newest first: it seals, all open */
export function createSealedCookies(
  { routes }: Config,
  cookie: SessionCookie,
  secrets: readonly string[]
): SealedCookiesOf {
  const sealing = Object.keys(routes.upstreams)
    .map(upstream => ({ upstream, names: sealedCookiesOf(routes, upstream) }))
    .filter(({ names }) => names.size > 0)
  if (sealing.length === 0) return new Map()
  const seal = createSeal(secrets, 'cookie-of-upstream')
  return new Map(sealing.map(each => [each.upstream, new SealedCookies({ ...each, seal, cookie })]))
}
