/** Finds a session's credential in what a browser is about to get. */
import { GatewayError } from '../errors/errors.ts'
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

/** Whether it has a secret, however deep: a token, a long one also within a text, or a cookie. */
export function holdsCredential(value: unknown, session: Holder = {}): boolean {
  const credentials = [session.credential ?? {}, ...Object.values(session.tokens ?? {})]
  const tokens = credentials
    .flatMap(({ token, refreshToken, idToken }) => [token ?? '', refreshToken ?? '', idToken ?? ''])
    .filter(each => each !== '')
  const longTokens = tokens.filter(each => each.length >= minContained)
  const { username, name, roles = [] } = session.identity ?? {}
  const ofCookies = credentials.flatMap(({ cookies = '' }) => cookieTexts(cookies))
  // Some back-ends set cookies that tell pages who is signed in, as Frappe's `user_id`.
  const texts = new Set(ofCookies).difference(new Set([username, name, ...roles]))
  for (const token of tokens) texts.add(token)
  if (texts.size === 0) return false
  const isSecret = (text: string) => texts.has(text) || longTokens.some(each => text.includes(each))
  // A list of its own, no recursion: the value may come from a back-end.
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const each = rest.pop()
    if (typeof each === 'string') {
      if (isSecret(each)) return true
    } else if (typeof each === 'number' || isRawNumber(each)) {
      // A back-end may write its token as a number.
      if (tokens.includes(typeof each === 'number' ? String(each) : each.rawJSON)) return true
    } else if (typeof each === 'object' && each !== null) {
      if (!Array.isArray(each) && Object.keys(each).some(isSecret)) return true
      for (const member of Object.values(each)) rest.push(member)
    }
  }
  return false
}

/** A shorter value of a cookie, such as a language, is no secret, and may be a user's own. */
const minCookieValue = 6

function cookieTexts(header: string): string[] {
  if (header === '') return []
  const pairs = header.split('; ')
  const values = pairs.map(pair => pair.slice(pair.indexOf('=') + 1))
  return [header, ...pairs, ...values.filter(value => value.length >= minCookieValue)]
}
