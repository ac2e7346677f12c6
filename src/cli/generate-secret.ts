/** `generate-secret`: prints a secret for the session cookie, or writes it to a new file. */
import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import type { Invocation } from './command.ts'

export async function generateSecret({ rest: [file], io }: Invocation): Promise<number> {
  const secret = `${randomBytes(32).toString('base64url')}\n`
  if (file === undefined) {
    io.stdout.write(secret)
    return 0
  }
  try {
    writeNewFile(file, secret)
    io.stderr.write(`wrote ${file}\n`)
    return 0
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    io.stderr.write(code === 'EEXIST' ? `${file} exists and was not changed\n` : `${message}\n`)
    return code === 'EEXIST' ? 0 : 1
  }
}

/** @throws when it exists: a secret in use is never replaced */
function writeNewFile(file: string, secret: string): void {
  const handle = openSync(file, 'wx', 0o600)
  try {
    writeFileSync(handle, secret)
  } catch (error) {
    // The next call would take an empty file for a secret.
    rmSync(file)
    throw error
  } finally {
    closeSync(handle)
  }
}
