/** Finds a session's credential in what a browser is about to get. */
import { GatewayError } from '../errors/errors.ts'
import { writeJson } from '../json/body.ts'
import { isRawNumber } from '../json/values.ts'
import type { Session } from '../session/types.ts'

/** @throws GatewayError `upstream.invalid` for an answer with a secret; `place`: its config key */
export function refuseLeak(value: unknown, session: Holder | undefined, place: string): void {
  if (!holdsCredential(value, session)) return
  throw new GatewayError('upstream.invalid', {
    cause:
      `${place} would give the browser a token or cookie of the back-end: ` +
      'name another member of the profile, or another `user.profile`'
  })
}

type Holder = Partial<Pick<Session, 'credential' | 'tokens' | 'identity'>>

/** Shorter tokens are only compared as a whole: they may be a part of any text. */
const minContained = 16

/**
 * Whether it has a secret, however deep: a token, a long one also within a text, or a cookie.
 * @throws GatewayError `shape.not-json` for what is nested too deeply to be written
 */
export function holdsCredential(
  value: unknown,
  { credential, tokens, identity }: Holder = {}
): boolean {
  const credentials = [credential ?? {}, ...Object.values(tokens ?? {})]
  const ofTokens = credentials
    .flatMap(({ token, refreshToken, idToken }) => [token ?? '', refreshToken ?? '', idToken ?? ''])
    .filter(each => each !== '')
  const { username, name, roles = [] } = identity ?? {}
  // Some back-ends set cookies that tell pages who is signed in, as Frappe's `user_id`.
  const shown = new Set([username, name, ...roles])
  const texts = credentials.flatMap(({ cookies = '' }) => cookieTexts(cookies))
  const ofCookies = texts.filter(each => !shown.has(each))
  const secrets = [
    ...[...ofTokens, ...ofCookies].map(each => JSON.stringify(each)),
    ...ofTokens
      .filter(each => each.length >= minContained)
      .map(each => JSON.stringify(each).slice(1, -1))
  ]
  if (secrets.length === 0) return false
  // A back-end may write its token as a number.
  const written = writeJson(value, (_name, each) => {
    if (typeof each !== 'number' && !isRawNumber(each)) return each
    const digits = typeof each === 'number' ? String(each) : each.rawJSON
    return ofTokens.includes(digits) ? digits : each
  })
  const text = written ?? ''
  return secrets.some(each => text.includes(each))
}

/** A shorter value of a cookie, such as a language, is no secret, and may be a user's own. */
const minCookieValue = 6

function cookieTexts(header: string): string[] {
  if (header === '') return []
  const pairs = header.split('; ')
  const values = pairs.map(pair => pair.slice(pair.indexOf('=') + 1))
  return [header, ...pairs, ...values.filter(value => value.length >= minCookieValue)]
}
