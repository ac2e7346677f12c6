/** `hash-password`: makes the argon2id hash for users.yaml, from a prompt or standard input. */
import { hashPassword } from '../login/argon2.ts'
import type { Invocation } from './command.ts'
import { readNewPassword } from './prompt.ts'

export async function hashPasswordCommand({ rest, io }: Invocation): Promise<number> {
  if (rest.length > 0) {
    io.stderr.write(
      'A password on the command line is visible to everyone on this machine and kept in the ' +
        'shell’s history. Type it at the prompt, or pass it on standard input.\n'
    )
    return 2
  }
  const password = await readNewPassword(io)
  io.stdout.write(`${await hashPassword(password)}\n`)
  return 0
}
