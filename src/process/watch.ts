/**
 * Looks at config files every two seconds, however they change: written in place, replaced by a
 * rename, or by another link in their path, as in a mounted ConfigMap; also in file systems that
 * send no notifications.
 */
import { statSync } from 'node:fs'
import { createInputs } from '../config/load/inputs.ts'

interface Options {
  readonly files: readonly string[]
  readonly everyMs?: number
  /** Called when the files have changed, and been the same for two looks. */
  readonly onChange: () => void
}

export type Watch = ReturnType<typeof watchFiles>

export function watchFiles({ files, everyMs = 2000, onChange }: Options) {
  let followed = files
  let reported = fingerprint(followed)
  let last = reported
  const timer = setInterval(() => {
    const now = fingerprint(followed)
    // A file that is being written differs from look to look.
    const isSettled = now === last
    last = now
    if (!isSettled || now === reported) return
    reported = now
    onChange()
  }, everyMs).unref()
  return {
    /** A new file counts as a change, since its former content is unknown. */
    follow: (next: readonly string[]): void => {
      if (next.toSorted().join('\n') === followed.toSorted().join('\n')) return
      followed = next
      reported = ''
    },
    close: () => clearInterval(timer)
  }
}

/** Whether the files still have the content that was read. */
export const isAsRead = (inputs: Readonly<Record<string, string>>): boolean =>
  Object.entries(inputs).every(([file, digest]) => {
    const now = createInputs()
    try {
      now.readBytes(file)
    } catch {}
    return now.digests()[file] === digest
  })

/** A text that changes whenever a file is replaced or written to. */
function fingerprint(files: readonly string[]): string {
  const looks = files.map(file => {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
      return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
    } catch {
      return 'none'
    }
  })
  return looks.join('\n')
}
