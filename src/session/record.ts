/** A session as the store keeps it: sealed JSON behind a letter for its version. */
import { parseKeepingDigits } from '../json/digits.ts'
import type { Seal } from './seal.ts'
import type { Session } from './types.ts'

const version = '1'

/** @param key in the store: the record does not open under another one */
export function sealRecord(seal: Seal, key: string, session: Session): string {
  return version + seal.close(key, JSON.stringify(session))
}

/** @returns undefined for what is damaged, none of ours, or sealed with another secret */
export function openRecord(seal: Seal, key: string, sealed: string): Session | undefined {
  if (!sealed.startsWith(version)) return undefined
  const text = seal.open(key, sealed.slice(version.length))
  if (text === undefined) return undefined
  const session = parseKeepingDigits(text) as Session | { readonly identity: null }
  return session.identity === null ? undefined : session
}

/** Whether the newest secret sealed it. */
export function isSealedByNewest(seal: Seal, sealed: string): boolean {
  return seal.isNewest(sealed.slice(version.length))
}
