/** `--header NAME: VALUE`, of a request that a command sends, or explains. */
import { connectionBound } from '../config/schema/header-names.ts'
import { UsageError } from './command.ts'

const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/

/**
 * The text itself may be a secret, so no message repeats it.
 * @throws UsageError for a text that is no header, or could not be sent as it is meant
 */
export function headersOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of texts) {
    const [, written = '', untrimmed = ''] = field.exec(text) ?? []
    const [name, value] = [written.toLowerCase(), untrimmed.trim()]
    if (name === '') {
      throw new UsageError('--header takes a name and a value, such as "tenant-id: 1".')
    }
    if (headers.has(name)) throw new UsageError(`--header: "${name}" has two values.`)
    if (connectionBound.has(name) || name === 'content-length') {
      throw new UsageError(`--header: "${name}" belongs to the connection, and cannot be chosen.`)
    }
    if (!/^[\x20-\x7e]+$/.test(value)) {
      throw new UsageError(`--header: the value of "${name}" is not printable ASCII, or is empty.`)
    }
    headers.set(name, value)
  }
  return Object.fromEntries(headers)
}
