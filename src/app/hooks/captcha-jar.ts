/**
 * The cookies that a back-end sets with a captcha's picture, kept in the browser: encrypted, so
 * that nobody there reads or chooses them, and bound to the back-end and a time.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { captchaCookiePrefix } from '../../config/schema/upstream-login.ts'
import type { SourceConfig } from '../../config/schema/gateway.ts'
import { cookiesIn, withSet } from '../../login/login-response.ts'
import { createSeal, type Seal } from '../../session/seal.ts'
import type { SessionCookie } from './session.ts'

const lifetimeMs = 5 * 60_000
/** Of the sealed cookie's value. */
const maxLength = 1024

interface Options {
  readonly upstream: string
  /** The back-end's cookies that are kept. */
  readonly names: readonly string[]
  readonly seal: Seal
  /** Its attributes are used for this cookie too. */
  readonly cookie: SessionCookie
}

export class CaptchaJar {
  readonly #options: Options
  readonly #name: string
  /** A seal of one back-end does not open as another's. */
  readonly #purpose: string

  constructor(options: Options) {
    const { upstream, cookie } = options
    this.#options = options
    this.#name = (cookie.options.secure ? '__Host-' : '') + captchaCookiePrefix + upstream
    this.#purpose = `captcha ${upstream}`
  }

  /** The back-end's cookies as a `Cookie` header's value; empty where none is there, or too old. */
  read({ cookies }: Pick<FastifyRequest, 'cookies'>): string {
    const sealed = cookies[this.#name]
    if (sealed === undefined || sealed.length > maxLength) return ''
    const content = this.#options.seal.open(this.#purpose, sealed) ?? ''
    const mark = content.indexOf(' ')
    const isAlive = mark > 0 && Number(content.slice(0, mark)) > Date.now()
    // Names that config no longer lists are not sent any more.
    return isAlive ? this.#keep(content.slice(mark + 1).split('; ')) : ''
  }

  /**
   * A `Set-Cookie` header's value for what the back-end has set, and for what it got. Undefined
   * without any, and for more than a cookie holds.
   */
  write(sent: string, setCookie: string | string[] | undefined): string | undefined {
    const set = cookiesIn(setCookie, this.#options.names).filter(isPrintable)
    const pairs = withSet(sent === '' ? [] : sent.split('; '), set)
    if (pairs.length === 0) return undefined
    const content = `${Date.now() + lifetimeMs} ${pairs.join('; ')}`
    const sealed = this.#options.seal.close(this.#purpose, content)
    return sealed.length > maxLength ? undefined : this.#format(sealed)
  }

  /** Removes the cookie from the browser. */
  clear({ cookies }: FastifyRequest, reply: FastifyReply): void {
    if (cookies[this.#name] === undefined) return
    const { path, secure, httpOnly, sameSite, partitioned } = this.#options.cookie.options
    reply.clearCookie(this.#name, { path, secure, httpOnly, sameSite, partitioned })
  }

  #keep(pairs: string[]): string {
    return cookiesIn(pairs, this.#options.names).join('; ')
  }

  /** A response to a route may go past the cookie plugin, so the header is written here. */
  #format(sealed: string): string {
    const { path, secure, sameSite, partitioned } = this.#options.cookie.options
    return [
      `${this.#name}=${sealed}`,
      `Max-Age=${lifetimeMs / 1000}`,
      `Path=${path}`,
      'HttpOnly',
      ...(secure ? ['Secure'] : []),
      `SameSite=${sameSite}`,
      ...(partitioned ? ['Partitioned'] : [])
    ].join('; ')
  }
}

export type CaptchaJars = ReadonlyMap<string, CaptchaJar>

interface JarOptions {
  readonly sources: readonly SourceConfig[]
  readonly cookie: SessionCookie
  /** Newest first: it seals, all open. */
  readonly secrets: readonly string[]
}

/** A jar for each upstream whose sign-in needs the cookies of a captcha, by its name. */
export function createCaptchaJars({ sources, cookie, secrets }: JarOptions): CaptchaJars {
  const names = new Map<string, string[]>()
  for (const source of sources) {
    if (source.kind !== 'upstream-login' || source.captchaCookies.length === 0) continue
    names.set(source.upstream, [...(names.get(source.upstream) ?? []), ...source.captchaCookies])
  }
  if (names.size === 0) return new Map()
  const seal = createSeal(secrets, 'captcha-cookie')
  return new Map(
    [...names].map(([upstream, ofUpstream]) => [
      upstream,
      new CaptchaJar({ upstream, names: ofUpstream, seal, cookie })
    ])
  )
}

function isPrintable(pair: string): boolean {
  return /^[\x21-\x3a\x3c-\x7e]+$/.test(pair)
}
