import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { hashPassword } from '../login/argon2.ts'
import { CommandError, type Invocation } from './command.ts'
import { readNewPassword } from './prompt.ts'

export async function generateSecret({ rest: [file] }: Invocation) {
  const secret = `${randomBytes(32).toString('base64url')}\n`
  if (file === undefined) return { painted: secret }
  try {
    writeFileSync(file, secret, { flag: 'wx', mode: 0o600 })
    return { note: `wrote ${file}` }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return { note: `${file} exists and was not changed` }
    // The next call would take an empty file for a secret.
    rmSync(file, { force: true })
    throw new CommandError(message)
  }
}

export async function hash({ io }: Invocation) {
  return { text: await hashPassword(await readNewPassword(io)) }
}
