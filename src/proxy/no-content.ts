/** Whether a successful response has no content: that is what holds no bytes, whatever its status. */
import { decoded } from '../json/coding.ts'

interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/** Nothing, packed, is a few bytes long; longer blanks may be packed too. */
const maxPackedBytes = 256
const maxBlanks = 64 * 1024
const blanks = /^(?:\xef\xbb\xbf)?[ \t\r\n]*$/

/** Not of 206, a part of something. Blanks count as nothing. */
export function hasNoContent({ status, headers, bytes }: Response): boolean {
  if (status === 204 || status === 205 || bytes.length === 0) return status !== 206
  if (status === 206 || status >= 300) return false
  const encoding = headers['content-encoding']
  return encoding === undefined ? isBlank(bytes) : isPackedBlank(bytes, encoding)
}

function isPackedBlank(bytes: Buffer, encoding: string | string[]): boolean {
  if (bytes.length > maxPackedBytes) return false
  try {
    return isBlank(decoded(bytes, encoding, maxBlanks))
  } catch {
    return false
  }
}

/** The first byte decides of nearly all bodies. */
function isBlank(bytes: Buffer): boolean {
  const [first = 0x20] = bytes
  return (first <= 0x20 || first === 0xef) && blanks.test(bytes.toString('latin1'))
}
