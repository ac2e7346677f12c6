/** Several keys of one count: a Cluster keeps all keys of a script in one slot. */

/** Of a name from outside: braces would mark the part of the key that decides its slot. */
export function withoutBraces(name: string): string {
  return name.replaceAll('{', '%7B').replaceAll('}', '%7D')
}

/**
 * @param key has no braces
 * @returns a second key in the slot of the first one; an ACL allows keys that begin with the prefix
 */
export function besides(prefix: string, key: string, what: string): string {
  return `${prefix}{${key}}.${what}`
}
