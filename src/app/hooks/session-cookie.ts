/** The session's cookie in the `Cookie` header of a request. */
import { Signer } from '@fastify/cookie'
import { recentlyUsed } from '../../bounded-map.ts'
import { GatewayError } from '../../errors/errors.ts'
import { cookieText, decodedCookie } from '../../proxy/cookie-header.ts'
import { keyOf } from '../../session/types.ts'
import type { RequestHook } from './context.ts'

interface Options {
  /** Name of the cookie. */
  readonly name: string
  /** A cookie that one of them signed is valid. */
  readonly secrets: readonly string[]
}

const maxCookies = 10_000

/** Of one as the gateway writes it, with room for what a client may code otherwise. */
const maxLength = 512

/**
 * Each cookie is verified once.
 * @returns the key of the session that a `Cookie` header names; undefined without a valid signature
 */
export function createSessionCookieReader({ name, secrets }: Options) {
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
export function soleSession({ name }: { readonly name: string }): RequestHook {
  const occurrences = new RegExp(`(?:^|[;,])[ \\t]*${name}[ \\t]*=[ \\t]*"?([^;]*)`, 'g')
  return function refuseTwoSessions(request, _reply, done) {
    const { cookie: header } = request.headers
    if (
      header !== undefined &&
      header.indexOf(name) !== header.lastIndexOf(name) &&
      new Set([...header.matchAll(occurrences)].map(([, value]) => value)).size > 1
    ) {
      return done(
        new GatewayError('request.malformed', {
          message:
            'Two different session cookies were sent. Please clear the cookies of this site and ' +
            'sign in again.'
        })
      )
    }
    done()
  }
}
