/** `generate-secret`: prints a secret for the session cookie, or writes it to a new file. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { Command } from './command.ts'

export const generateSecret: Command = {
  summary: 'print a secret for session.secrets; with a FILE, write it there unless it exists',
  usage: ['[FILE]'],
  details: `
32 random bytes, as text. Only its owner can read the new FILE.

Examples:
  export SESSION_SECRET=$(console-gateway generate-secret)
  console-gateway generate-secret /run/secrets/session`,
  run: async ({ rest: [file] }) => {
    const secret = `${randomBytes(32).toString('base64url')}\n`
    if (file === undefined) {
      process.stdout.write(secret)
      return 0
    }
    try {
      // `wx`: a secret in use is never replaced.
      writeFileSync(file, secret, { flag: 'wx', mode: 0o600 })
      process.stderr.write(`wrote ${file}\n`)
      return 0
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      process.stderr.write(
        code === 'EEXIST' ? `${file} exists and was not changed\n` : `${message}\n`
      )
      return code === 'EEXIST' ? 0 : 1
    }
  }
}
