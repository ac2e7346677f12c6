/** The closed files of a chain that are older than `keep`, renamed before a line says so. */
import { stat } from 'node:fs/promises'
import { chainsIn, setAside } from './chain-files.ts'
import type { AuditKey, ReadLine } from './line.ts'
import { lastLineOf } from './tail.ts'

const unsigned = 'does not end in a line that a key of audit.key has signed'

interface Options {
  readonly folder: string
  readonly keys: readonly AuditKey[]
  readonly keepMs: number
  readonly now: () => number
}

interface OldFiles {
  readonly paths: string[]
  /** The last line, and the number, of the newest. */
  last: ReadLine | undefined
  file: number
  /** Why the next one cannot be deleted. */
  problem: unknown
}

/**
 * The oldest first, up to one that is young or cannot be deleted: none is missing in between.
 * @param before number of a file that stays
 */
export async function setOldAside(
  { folder, keys, keepMs, now }: Options,
  chain: string,
  before: number
): Promise<OldFiles> {
  const old: OldFiles = { paths: [], last: undefined, file: 0, problem: undefined }
  try {
    for (const file of chainsIn(folder).get(chain) ?? []) {
      if (file.number >= before) break
      const last = await lastLineOf(file.path, keys)
      if (last === undefined) {
        const { mtimeMs } = await stat(file.path)
        if (now() - mtimeMs >= keepMs) old.problem = new Error(`${file.path} ${unsigned}`)
        break
      }
      if (now() - Date.parse(last.at) < keepMs) break
      old.paths.push(await setAside(file))
      old.last = last
      old.file = file.number
    }
  } catch (error) {
    old.problem = error
  }
  return old
}
