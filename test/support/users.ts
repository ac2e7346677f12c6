/** Users files of tests: hashes that cost next to nothing, for tests sign in by the hundred. What a real one costs is held by `login/argon2`. */
import { argon2Sync, randomBytes } from 'node:crypto'
import { password } from './sign-in.ts'

export function hashOf(text: string): string {
  const salt = randomBytes(16)
  const cost = { memory: 1024, passes: 1, parallelism: 1 }
  const tag = argon2Sync('argon2id', { message: text, nonce: salt, ...cost, tagLength: 32 })
  const encoded = [salt, tag].map(bytes => bytes.toString('base64').replace(/=+$/, ''))
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${encoded.join('$')}`
}

const hash = hashOf(password)

/** `alice` (roles admin, user) and `bob` (role user). */
export const testUsers = {
  alice: {
    password: hash,
    id: '1',
    name: 'Alice Admin',
    roles: ['admin', 'user'],
    profile: { email: 'alice@example.com' }
  },
  bob: { password: hash, id: '2', name: 'Bob', roles: ['user'] }
}
