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
  const text = sealed.startsWith(version) ? seal.open(key, sealed.slice(1)) : undefined
  if (text === undefined) return undefined
  const session = parseKeepingDigits(text) as Session | { readonly identity: null }
  return session.identity === null ? undefined : session
}
