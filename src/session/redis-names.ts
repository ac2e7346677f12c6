import { digestIn, isKey, type SignedIn } from './types.ts'

export type Names = ReturnType<typeof createNames>

export function createNames(prefix: string) {
  // Changes of what begins so are announced, the epoch among them.
  const record = (key: string) => `${prefix}s:${key}`
  return {
    record,
    epoch: record('epoch'),
    /** @param key of a session, or the digest of its user */
    list: (key: string) => `${prefix}u:${digestIn(key)}`,
    users: `${prefix}users`,
    keys: `${prefix}keys`,
    listFor: (user?: SignedIn) => prefix + (user && isKey(user) ? 'keys' : 'users'),
    blocks: `${prefix}blocked`,
    set: (name: string) => `${prefix}set:${name}`,
    lock: (name: string) => `${prefix}lock:${name}`
  }
}

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
