/** Finds a session's credential in what a browser is about to get. */
import { isRawNumber } from '../json/values.ts'
import type { Credential } from '../session/record.ts'

/**
 * Whether a text or number of the value, however deep, is a secret of the credential: a token, or a
 * cookie, as a pair or as its value.
 */
export function holdsCredential(value: unknown, credential: Credential | undefined): boolean {
  if (credential === undefined) return false
  const tokens = setOf([credential.token, credential.refreshToken])
  const cookies = setOf(cookieTexts(credential.cookies))
  // A list of its own, no recursion: the value may come from a back-end.
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    const each = rest.pop()
    if (typeof each === 'string') {
      if (tokens.has(each) || cookies.has(each)) return true
    } else if (typeof each === 'number' || isRawNumber(each)) {
      // A back-end may write its token as a number.
      if (tokens.has(typeof each === 'number' ? String(each) : each.rawJSON)) return true
    } else if (typeof each === 'object' && each !== null) {
      for (const member of Object.values(each)) rest.push(member)
    }
  }
  return false
}

function cookieTexts(header: string | undefined): string[] {
  const pairs = header?.split('; ') ?? []
  return [header ?? '', ...pairs, ...pairs.map(pair => pair.slice(pair.indexOf('=') + 1))]
}

function setOf(texts: ReadonlyArray<string | undefined>): ReadonlySet<string | undefined> {
  return new Set(texts.filter(Boolean))
}
