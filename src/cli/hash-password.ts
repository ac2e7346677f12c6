/** `hash-password`: makes the argon2id hash for users.yaml, from a prompt or standard input. */
import { hashPassword } from '../login/argon2.ts'
import type { Command } from './command.ts'
import { readNewPassword } from './prompt.ts'

export const hashPasswordCommand: Command = {
  summary: 'read a password (prompt or standard input), print its argon2id hash',
  details: `
The hash is the password of a user in a users file. A password on the command line is refused: it
would stay in the shell's history.

Examples:
  console-gateway hash-password
  pass show console/alice | console-gateway hash-password`,
  // The usage error would print the words, and one of them may be a password.
  checksWords: true,
  run: async ({ rest }) => {
    if (rest.length > 0) {
      process.stderr.write(
        'A password on the command line is visible to everyone on this machine and kept in the ' +
          'shell’s history. Type it at the prompt, or pass it on standard input.\n'
      )
      return 2
    }
    const password = await readNewPassword()
    process.stdout.write(`${await hashPassword(password)}\n`)
    return 0
  }
}
