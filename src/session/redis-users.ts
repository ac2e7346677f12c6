/** The list of signed-in users in Redis: how a member names a user, and how one is found. */
import type { SignedIn } from './types.ts'

/** Names a user in the list of those who are signed in. */
export function memberOf({ source, id, username }: SignedIn): string {
  return JSON.stringify([source, id, username])
}

export function readMember(member: string): SignedIn {
  const [source, id, username] = JSON.parse(member) as [string, string, string]
  return { source, id, username }
}

/** Finds the longest part in either case: of letters with two, globs of Redis know ASCII alone. */
export function patternOf(text: string): string {
  const parts = text.match(/[\w.@\p{Lo}-]+/gu) ?? ['']
  const [longest = ''] = parts.toSorted((a, b) => b.length - a.length)
  const signs = Array.from(longest, sign => {
    const [lower, upper] = [sign.toLowerCase(), sign.toUpperCase()]
    return lower === upper ? sign : `[${lower}${upper}]`
  })
  return `*","*${signs.join('')}*`
}

/** The members in a page of ZSCAN, which has their scores between. */
export function readPage(page: readonly string[]): SignedIn[] {
  return page.filter((_, index) => index % 2 === 0).map(readMember)
}
