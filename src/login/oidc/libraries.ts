/** The libraries take 45 ms to read: only the first call that needs them does. */
import { isRecord, type JsonRecord } from '../../json/values.ts'

export const openIdClient = async () => await import('openid-client')
export const jose = async () => await import('jose')

/** The header (0) or claims (1) of a token, unverified. @throws SyntaxError for what is none */
export function partOf(token: string, index: 0 | 1): JsonRecord {
  const text = Buffer.from(token.split('.', 2)[index] ?? '', 'base64url').toString()
  const part: unknown = JSON.parse(text)
  return isRecord(part) ? part : {}
}
