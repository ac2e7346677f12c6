/** `--header NAME: VALUE`, for commands that send requests to a back-end. */
import { connectionBound } from '../config/schema/header-names.ts'
import { UsageError } from './command.ts'

/**
 * @returns by name, in lower case
 * @throws UsageError for a text that could not be sent as it is meant
 */
export function headersOf(written: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of written) {
    const [, name, rest = ''] = /^([a-z0-9-]+):([\x20-\x7e]+)$/i.exec(text) ?? []
    const value = rest.trim()
    // The text itself may be a secret, so no message repeats it.
    if (name === undefined || value === '') {
      throw new UsageError('--header takes a name and a value, such as "tenant-id: 1".')
    }
    const key = name.toLowerCase()
    if (connectionBound.has(key) || key === 'content-length') {
      throw new UsageError(`--header: "${key}" belongs to the connection, and cannot be chosen.`)
    }
    if (headers.has(key)) throw new UsageError(`--header: "${key}" has two values.`)
    headers.set(key, value)
  }
  return Object.fromEntries(headers)
}
