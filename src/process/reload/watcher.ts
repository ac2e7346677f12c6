/** Tells when config files change, however that is done: written in place, renamed over, or a link on the way swapped, as a mounted ConfigMap does. */
import { type FSWatcher, readlinkSync, statSync, watch } from 'node:fs'
import { dirname, join, parse, relative, resolve, sep } from 'node:path'
import { adopt } from '../../observability/emitters.ts'
import { createInputs } from '../../config/load/inputs.ts'

interface Options {
  readonly files: readonly string[]
  /** How long the files have to stand still. */
  readonly settleMs: number
  /** How often they are looked at, beside the system's notices. */
  readonly pollMs: number
  readonly onChange: () => void
}

export interface Watch {
  /** From now on these files. One that is new here is told as a change: nobody saw what it held before. */
  readonly follow: (files: readonly string[]) => void
  readonly close: () => void
}

export function watchFiles({ files, settleMs, pollMs, onChange }: Options): Watch {
  let followed = files
  let known = fingerprint(followed)
  let pending = known
  let settling: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()

  /** Notices are hints; what counts is whether a file is another one now. */
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
    if (now === known) return
    known = now
    onChange()
  }

  /** Folders, not files: a file that is replaced takes its own watch with it. */
  function watchFolders(): void {
    const wanted = new Set(followed.flatMap(foldersOf))
    for (const [folder, watcher] of watchers) {
      // Whether it is still the folder of that name is not to be seen: a new watch costs little.
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of wanted) {
      try {
        // What cannot be watched is still looked at.
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
      known = ''
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

/** Whether the files still hold what was read of them. */
export const isAsRead = (inputs: Readonly<Record<string, string>>): boolean =>
  Object.entries(inputs).every(([file, digest]) => {
    const now = createInputs()
    try {
      now.read(file)
    } catch {}
    return now.digests()[file] === digest
  })

/** Another text whenever one of the files is another one, or was written to. */
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

/** Notes the folder in which each link on a path lies, and that of the file; gives where the first link leads. */
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
