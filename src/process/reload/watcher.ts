/**
 * Watches config files, however they change: written in place, replaced by a rename, or by another
 * link in their path, as in a mounted ConfigMap.
 */
import { type FSWatcher, readlinkSync, statSync, watch } from 'node:fs'
import { dirname, join, parse, relative, resolve, sep } from 'node:path'
import { adopt } from '../../observability/emitters.ts'
import { createInputs } from '../../config/load/inputs.ts'

interface Options {
  readonly files: readonly string[]
  /** The time without a change before `onChange` is called. */
  readonly settleMs: number
  /** The interval of checks, beside the system's notices. */
  readonly pollMs: number
  readonly onChange: () => void
}

export interface Watch {
  /**
   * Replaces the list of files. A new file counts as a change, since its former content is unknown.
   */
  readonly follow: (files: readonly string[]) => void
  readonly close: () => void
}

export function watchFiles({ files, settleMs, pollMs, onChange }: Options): Watch {
  let followed = files
  let reported = fingerprint(followed)
  let pending = reported
  let settling: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()

  /** Notices are hints only: the fingerprint shows whether a file has changed. */
  function look(): void {
    const now = fingerprint(followed)
    if (now === pending) return
    pending = now
    clearTimeout(settling)
    settling = setTimeout(settle, settleMs).unref()
  }

  function settle(): void {
    const now = fingerprint(followed)
    if (now !== pending) return look()
    settling = undefined
    watchFolders()
    if (now === reported) return
    reported = now
    onChange()
  }

  /** Folders, not files: a file that is replaced takes its own watch with it. */
  function watchFolders(): void {
    const wanted = new Set(followed.flatMap(foldersOf))
    for (const [folder, watcher] of watchers) {
      // A watcher does not show whether its folder was replaced, so each gets a new one.
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of wanted) {
      try {
        // A folder that cannot be watched is still polled.
        watchers.set(folder, adopt(watch(folder, { persistent: false }, look)))
      } catch {}
    }
  }

  watchFolders()
  const poll = setInterval(look, pollMs).unref()
  return {
    follow: next => {
      if (next.toSorted().join('\n') === followed.toSorted().join('\n')) return
      followed = next
      reported = ''
      watchFolders()
      look()
    },
    close: () => {
      clearInterval(poll)
      clearTimeout(settling)
      for (const watcher of watchers.values()) watcher.close()
    }
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
  return files
    .map(file => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
        return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
      } catch {
        return 'none'
      }
    })
    .join('\n')
}

const maxLinks = 40

/** The folder of a file, and those of all links on the way to it. */
function foldersOf(file: string): string[] {
  const folders = new Set<string>()
  let rest = [file]
  for (let links = 0; links <= maxLinks && rest.length > 0; links++) {
    rest = rest.flatMap(path => followLink(path, folders))
  }
  return [...folders]
}

/**
 * Adds the folder of the first link on a path, or of the file. @returns the path with that link
 * resolved
 */
function followLink(path: string, folders: Set<string>): string[] {
  const { root } = parse(path)
  let at = root
  const steps = relative(root, path).split(sep)
  for (const [index, step] of steps.entries()) {
    const next = join(at, step)
    const target = linkTarget(next)
    if (target !== undefined) {
      folders.add(at)
      return [resolve(at, target, ...steps.slice(index + 1))]
    }
    at = next
  }
  folders.add(dirname(path))
  return []
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
