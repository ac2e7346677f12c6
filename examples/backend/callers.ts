/** Who asks the example back-end: someone the gateway vouches for, or the holder of one of its own tokens. */
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller } from './data.ts'

interface Callers {
  /** A new token for a caller who has signed in here. */
  issue(caller: Caller): string
  find(headers: IncomingHttpHeaders): Caller | undefined
  /** Ends the token that the headers carry, if they carry one. */
  forget(headers: IncomingHttpHeaders): void
}

const maxTokens = 10_000

export function createCallers(tokenSeconds: number): Callers {
  const tokens = new Map<string, { caller: Caller; endsAt: number }>()
  return {
    issue(caller) {
      const token = randomBytes(24).toString('base64url')
      if (tokens.size >= maxTokens) tokens.delete(tokens.keys().next().value ?? '')
      tokens.set(token, { caller, endsAt: Date.now() + tokenSeconds * 1000 })
      return token
    },
    find(headers) {
      const uid = fieldOf(headers, 'x-user-id')
      if (uid !== '') {
        const roles = String(headers['x-user-roles'] ?? '')
          .split(',')
          .map(role => decoded(role.trim()))
          .filter(role => role !== '')
        return { uid, loginName: fieldOf(headers, 'x-user-name') || uid, roles }
      }
      const token = bearerOf(headers)
      const found = tokens.get(token)
      if (found === undefined || found.endsAt > Date.now()) return found?.caller
      tokens.delete(token)
      return undefined
    },
    forget(headers) {
      tokens.delete(bearerOf(headers))
    }
  }
}

const bearerOf = (headers: IncomingHttpHeaders) =>
  /^Bearer +([\w-]+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''

const fieldOf = (headers: IncomingHttpHeaders, name: string) =>
  decoded(String(headers[name] ?? '').trim())

/** The gateway percent-encodes what is not printable ASCII. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
