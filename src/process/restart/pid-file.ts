/** The file with the id of the process that serves, for service managers. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

export interface PidFile {
  /** @throws when the file cannot be written */
  readonly write: () => void
  /** Deletes the file, unless another process has written its own id there. */
  readonly remove: () => void
}

export function createPidFile(path: string): PidFile {
  const line = `${process.pid}\n`
  return {
    write: () => {
      // Renamed, since nobody may read half an id.
      const unfinished = `${path}.${process.pid}`
      writeFileSync(unfinished, line, { mode: 0o644 })
      renameSync(unfinished, path)
    },
    remove: () => {
      try {
        if (readFileSync(path, 'utf8') === line) rmSync(path, { force: true })
      } catch {}
    }
  }
}
