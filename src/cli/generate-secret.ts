/** `generate-secret`: prints a secret for the session cookie, or writes it to a file that is not there yet. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { Command } from './command.ts'

export const generateSecret: Command = {
  summary: 'print a secret for session.secrets; with a FILE, write it there unless it exists',
  usage: ['[FILE]'],
  details: `
32 random bytes, as text. Only its owner may read the FILE that is written.

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
      // Only its owner may read it, and one that is in use is never replaced.
      writeFileSync(file, secret, { flag: 'wx', mode: 0o600 })
      process.stderr.write(`wrote ${file}\n`)
      return 0
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      process.stderr.write(
        code === 'EEXIST' ? `${file} exists and was left as it is\n` : `${message}\n`
      )
      return code === 'EEXIST' ? 0 : 1
    }
  }
}
