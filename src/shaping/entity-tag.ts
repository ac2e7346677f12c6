/** The `ETag` of a shaped body (RFC 9110 §8.8.3). */
import { hash } from 'node:crypto'

/** @param body text counts as its UTF-8 */
export const entityTagOf = (body: string | Uint8Array): string =>
  `"${hash('sha256', body, 'base64url').slice(0, 27)}"`
