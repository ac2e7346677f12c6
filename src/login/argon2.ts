/** Password hashes: argon2id in PHC strings, computed in the thread pool, few at a time. */
import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { Slots } from '../limits/slots.ts'

export interface Hash {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly tag: Buffer
}

/** OWASP's password storage sheet: argon2id with 19 MiB, 2 passes, 1 lane. */
const recommended = { memory: 19_456, passes: 2, parallelism: 1 }
const tagLength = 32
const phc =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

const derive = promisify<'argon2id', Argon2Parameters, Buffer>((algorithm, parameters, done) =>
  argon2(algorithm, parameters, done)
)

/** Hashing fills cores and memory: two at once, and beyond 100 that wait a sign-in is refused. */
const hashing = new Slots(2, 100)

export async function hashPassword(password: string): Promise<string> {
  const { memory, passes, parallelism } = recommended
  const salt = randomBytes(16)
  const parameters = { message: password, nonce: salt, memory, passes, parallelism, tagLength }
  const tag = await derive('argon2id', parameters)
  const encoded = [salt, tag].map(bytes => bytes.toString('base64').replace(/={1,2}$/, ''))
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encoded.join('$')}`
}

export function parseHash(written: string): Hash {
  const [, memory, passes, parallelism, salt = '', tag = ''] = phc.exec(written) ?? []
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64')
  }
}

/** Matches no password, as costly as `like`: time does not show whether a user exists. */
export function decoyHash(like?: Hash): Hash {
  const { tag, ...cost } = like ?? { ...recommended, tag: { length: tagLength } }
  return { ...cost, salt: randomBytes(16), tag: randomBytes(tag.length) }
}

export async function verifyPassword(password: string, hash: Hash): Promise<boolean> {
  const { memory, passes, parallelism, salt: nonce, tag } = hash
  const parameters = { message: password, nonce, memory, passes, parallelism }
  const derived = await hashing.run(() =>
    derive('argon2id', { ...parameters, tagLength: tag.length })
  )
  return timingSafeEqual(derived, tag)
}
