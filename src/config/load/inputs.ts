/** The only reader of config's files, so that a watcher knows all of them and their content. */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

const maxFileBytes = 1024 * 1024

export interface Inputs {
  /** @throws the system's error; RangeError for a file over 1 MiB */
  readonly read: (file: string) => string
  /** By absolute path: the digest of the content, or an empty string for an unreadable file. */
  readonly digests: () => Readonly<Record<string, string>>
}

export function createInputs(): Inputs {
  const digests: Record<string, string> = {}
  return {
    read: file => {
      digests[file] = ''
      if (statSync(file).size > maxFileBytes) throw new RangeError('the file is larger than 1 MiB')
      const content = readFileSync(file)
      digests[file] = createHash('sha256').update(content).digest('base64')
      return content.toString('utf8')
    },
    digests: () => ({ ...digests })
  }
}
