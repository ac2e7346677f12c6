/** `generate-secret` and `hash-password`: what a config holds in place of what nobody may read. */
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { hashPassword } from '../login/argon2.ts'
import type { Invocation } from './command.ts'
import { readNewPassword } from './prompt.ts'

/** For the session cookie; a file in use is never replaced. */
export async function generateSecret({ rest: [file], io }: Invocation): Promise<number> {
  const secret = `${randomBytes(32).toString('base64url')}\n`
  if (file === undefined) {
    io.stdout.write(secret)
    return 0
  }
  try {
    writeFileSync(file, secret, { flag: 'wx', mode: 0o600 })
    io.stderr.write(`wrote ${file}\n`)
    return 0
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') {
      io.stderr.write(`${file} exists and was not changed\n`)
      return 0
    }
    // The next call would take an empty file for a secret.
    if (existsSync(file)) rmSync(file)
    io.stderr.write(`${message}\n`)
    return 1
  }
}

export async function hash({ io }: Invocation): Promise<number> {
  io.stdout.write(`${await hashPassword(await readNewPassword(io))}\n`)
  return 0
}
