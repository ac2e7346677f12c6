/** Blocks of operators: by a user's name or id, at one credential source or at any. */
import { accountKey, type SignedIn } from './types.ts'

export interface BlockedName {
  readonly source?: string | undefined
  /** A user name or an id, in any spelling. */
  readonly name: string
}

export interface Block extends BlockedName {
  /** `Infinity`: until it is lifted. */
  readonly leftMs: number
}

/** Names a block in the store. */
export function blockOf({ source, name }: BlockedName): string {
  return JSON.stringify([source ?? null, accountKey(name)])
}

/** The names of all blocks that would keep the user out. */
export function blocksOf({ source, id, username }: SignedIn): string[] {
  return [username, id].flatMap(name => [blockOf({ source, name }), blockOf({ name })])
}

/** Whether a block would keep a user out. */
export function isBlockOf(name: BlockedName): (user: SignedIn) => boolean {
  const block = blockOf(name)
  return user => blocksOf(user).includes(block)
}

export function readBlock(block: string, leftMs: number): Block {
  const [source, name] = JSON.parse(block) as [string | null, string]
  return { ...(source !== null && { source }), name, leftMs }
}
