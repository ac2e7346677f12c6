/** The file with the id of the process that serves, for service managers. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

export interface PidFile {
  /** Writes the id beside the file. @throws when it cannot */
  readonly prepare: () => void
  /** Puts it in its place: nobody may read half an id. @throws when it cannot */
  readonly publish: () => void
  /** Deletes the file, unless another process has written its own id there. */
  readonly remove: () => void
}

export function createPidFile(path: string): PidFile {
  const line = `${process.pid}\n`
  const unfinished = `${path}.${process.pid}`
  return {
    prepare: () => {
      // Made anew: writing would follow a link that somebody else has put there.
      rmSync(unfinished, { force: true })
      writeFileSync(unfinished, line, { flag: 'wx', mode: 0o644 })
    },
    publish: () => renameSync(unfinished, path),
    remove: () => {
      try {
        rmSync(unfinished, { force: true })
        if (readFileSync(path, 'utf8') === line) rmSync(path, { force: true })
      } catch {}
    }
  }
}
