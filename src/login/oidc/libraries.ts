/**
 * The libraries, read by the first call that needs them: a gateway without a provider starts
 * without their 45 ms.
 */
import { isRecord, type JsonRecord } from '../../json/values.ts'

export const openIdClient = async () => await import('openid-client')
export const jose = async () => await import('jose')

/**
 * The header (0) or the claims (1) of a token, which nothing has verified.
 * @throws SyntaxError for what is no token
 */
export function partOf(token: string, index: 0 | 1): JsonRecord {
  const text = Buffer.from(token.split('.', 2)[index] ?? '', 'base64url').toString()
  const part: unknown = JSON.parse(text)
  return isRecord(part) ? part : {}
}
