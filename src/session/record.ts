/** A session's form in the store: `1SEAL`. What does not begin so is no session. */
import { parseKeepingDigits } from '../json/digits.ts'
import type { Seal } from './seal.ts'
import type { Session } from './types.ts'

const version = '1'

/** @param key of the session: the record does not open under another one */
export function sealSession(seal: Seal, key: string, session: Session): string {
  return version + seal.close(key, JSON.stringify(session))
}

/** @returns undefined for what is damaged, none of ours, or sealed with another secret */
export function openSession(seal: Seal, key: string, sealed: string): Session | undefined {
  if (!sealed.startsWith(version)) return undefined
  const text = seal.open(key, sealed.slice(version.length))
  return text === undefined ? undefined : parse(text)
}

function parse(text: string): Session | undefined {
  try {
    const session = parseKeepingDigits(text) as Session
    const { id, identity, source, address, agent, createdAt, idleMs, password = '' } = session
    const texts = [id, identity.id, identity.username, identity.name, source, address, agent]
    const isSound =
      [...texts, ...identity.roles, password].every(value => typeof value === 'string') &&
      [createdAt, idleMs].every(Number.isFinite)
    return isSound ? session : undefined
  } catch {
    return undefined
  }
}
