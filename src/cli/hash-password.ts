/** `hash-password`: makes the argon2id hash for users.yaml, from a prompt or standard input. */
import { hashPassword } from '../login/argon2.ts'
import type { Invocation } from './command.ts'
import { readNewPassword } from './prompt.ts'

export async function hash({ io }: Invocation): Promise<number> {
  const password = await readNewPassword(io)
  io.stdout.write(`${await hashPassword(password)}\n`)
  return 0
}
