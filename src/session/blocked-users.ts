/** Blocks of operators: by a user's name or id, at one credential source or at any. */
import type { SessionStore } from './store.ts'
import { accountKey, type SignedIn } from './types.ts'

export interface BlockedName {
  readonly source?: string | undefined
  /** A user name or an id, in any spelling. */
  readonly name: string
}

/** The set of the store that has them. No session of such a user is opened; others live on. */
export const blocks = 'blocked'
/** Until it is lifted, in milliseconds. */
export const forever = 1e15

export function blockOf({ source, name }: BlockedName): string {
  return JSON.stringify([source ?? null, accountKey(name)])
}

export async function blocksIn(store: SessionStore) {
  return Array.from(await store.membersOf(blocks), ([member, leftMs]) => {
    const [source, name] = JSON.parse(member) as [string | null, string]
    return { ...(source !== null && { source }), name, leftMs }
  })
}

/** The members that would keep a user out. */
export function blocksOf({ source, id, username }: SignedIn): string[] {
  return [username, id].flatMap(name => [blockOf({ source, name }), blockOf({ name })])
}

export function isBlockOf(name: BlockedName): (user: SignedIn) => boolean {
  const member = blockOf(name)
  return user => blocksOf(user).includes(member)
}
