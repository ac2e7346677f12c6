import { randomBytes } from 'node:crypto'
import { hashPassword } from '../login/argon2.ts'
import type { Invocation } from './command.ts'
import { readNewPassword } from './prompt.ts'

export async function generateSecret() {
  return { text: randomBytes(32).toString('base64url') }
}

export async function hash({ io }: Invocation) {
  return { text: await hashPassword(await readNewPassword(io)) }
}
