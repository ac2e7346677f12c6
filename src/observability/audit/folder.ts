/** Makes the folder of the ledger. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes an absolute folder and those above it. Node's own way (`recursive`) never ends where the
 * system says of a new folder in an existing one that it is not there, as below /proc.
 * @throws an error of the system
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
