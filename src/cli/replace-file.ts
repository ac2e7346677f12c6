/** Replaces a file as a whole: a reader, such as a running gateway, never sees half of it. */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync
} from 'node:fs'
import { CommandError } from './command.ts'

/**
 * Keeps the mode and owner of the file; follows a symbolic link.
 * @param mode of a new file
 * @throws CommandError when it cannot be written; the old file is unchanged then
 */
export function replaceFile(file: string, content: string, mode = 0o644): void {
  const target = existsSync(file) ? realpathSync(file) : file
  const former = existsSync(target) ? statSync(target) : undefined
  const draft = `${target}.${randomBytes(6).toString('hex')}.tmp`
  try {
    writeDurably(draft, content, former === undefined ? mode : former.mode & 0o777)
    if (former !== undefined) keepOwner(draft, former)
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    const advice = code === 'ENOENT' ? ' Does its folder exist?' : ''
    throw new CommandError(`${file} cannot be written (${code}).${advice}`)
  }
}

function writeDurably(file: string, content: string, mode: number): void {
  const handle = openSync(file, 'wx', mode)
  try {
    // The umask may have taken bits of the mode away.
    chmodSync(file, mode)
    writeSync(handle, content)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** Only root may give a file to others; for everyone else it is their own already. */
function keepOwner(file: string, { uid, gid }: { uid: number; gid: number }): void {
  try {
    chownSync(file, uid, gid)
  } catch {}
}
