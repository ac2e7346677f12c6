/** `--header NAME: VALUE`, of a request that a command sends, or explains. */
import { connectionBound } from '../config/schema/header-names.ts'
import { UsageError } from './command.ts'

const written = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/

/**
 * Headers that somebody may send, whatever the gateway or a back-end does with them.
 * @returns by name, in lower case
 * @throws UsageError for a text that is no header
 */
export function anyHeadersOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of texts) {
    const [, name, value] = written.exec(text) ?? []
    // The text itself may be a secret, so no message repeats it.
    if (name === undefined || value === undefined) {
      throw new UsageError('--header takes a name and a value, such as "tenant-id: 1".')
    }
    const key = name.toLowerCase()
    if (headers.has(key)) throw new UsageError(`--header: "${key}" has two values.`)
    headers.set(key, value.trim())
  }
  return Object.fromEntries(headers)
}

/**
 * Headers for a request to a back-end.
 * @returns by name, in lower case
 * @throws UsageError for a text that could not be sent as it is meant
 */
export function headersOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const headers = anyHeadersOf(texts)
  for (const [name, value] of Object.entries(headers)) {
    if (connectionBound.has(name) || name === 'content-length') {
      throw new UsageError(`--header: "${name}" belongs to the connection, and cannot be chosen.`)
    }
    if (!/^[\x20-\x7e]+$/.test(value)) {
      throw new UsageError(`--header: the value of "${name}" is not printable ASCII, or is empty.`)
    }
  }
  return headers
}
