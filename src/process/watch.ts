/**
 * Looks at config files every two seconds, however they change: in place, by a rename, or by
 * another link in their path, as in a mounted ConfigMap; also in file systems that send no
 * notifications.
 */
import { isDeepStrictEqual } from 'node:util'
import { fingerprintOf } from '../config/read/inputs.ts'

type Fingerprints = Readonly<Record<string, string>>

export type Watch = ReturnType<typeof watchFiles>

/** @param onChange called when the files have changed, and been the same for two looks */
export function watchFiles(read: Fingerprints, onChange: () => void) {
  let reported = read
  const look = (): Fingerprints =>
    Object.fromEntries(Object.keys(reported).map(file => [file, fingerprintOf(file)]))
  let last = look()
  const timer = setInterval(() => {
    const now = look()
    // A file that is being written differs from look to look.
    const isSettled = isDeepStrictEqual(now, last)
    last = now
    if (!isSettled || isDeepStrictEqual(now, reported)) return
    reported = now
    onChange()
  }, 2000).unref()
  return {
    /** From now on a change is one of what was read last. */
    follow: (next: Fingerprints): void => {
      reported = next
    },
    close: () => clearInterval(timer)
  }
}
