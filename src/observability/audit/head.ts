/**
 * The head of a chain: the number and `mac` of its last line, stored where who can cut the file
 * cannot write, so that a missing tail shows. It is signed with the key of the ledger.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { headFilePath } from './chain-files.ts'
import { type AuditKey, type ChainPosition, hmac } from './line.ts'

/** The store of heads, by chain. */
export interface HeadStore {
  /** @throws when it cannot be asked */
  readonly read: (chain: string) => Promise<string | undefined>
  readonly write: (chain: string, head: string) => Promise<void>
  readonly remove: (chain: string) => Promise<void>
  /** The chains that have a head. @throws when it cannot be asked */
  readonly chains?: () => Promise<readonly string[]>
}

const headPattern = /^(0|[1-9]\d{0,15}) ([\w-]{43}|-) ([\w-]{8}) ([\w-]{43})$/

const signed = (chain: string, { seq, mac }: ChainPosition) => `head of ${chain}: ${seq} ${mac}`

export function formatHead(chain: string, position: ChainPosition, { id, key }: AuditKey): string {
  const { seq, mac } = position
  return `${seq} ${mac} ${id} ${hmac(key, signed(chain, position))}`
}

/** @returns undefined for a text that was not written with one of the keys */
export function readHead(
  chain: string,
  text: string,
  keys: readonly AuditKey[]
): ChainPosition | undefined {
  const [, seq, mac = '', keyId, signature] = headPattern.exec(text.trim()) ?? []
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) return undefined
  const position = { seq: Number(seq), mac }
  return hmac(key.key, signed(chain, position)) === signature ? position : undefined
}

/** Beside the ledger, for installations without Redis: hides nothing from who can write both. */
export function headFiles(folder: string): HeadStore {
  return {
    read: async chain => {
      try {
        return await readFile(headFilePath(folder, chain), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    write: async (chain, head) => {
      const path = headFilePath(folder, chain)
      await writeFile(`${path}.new`, `${head}\n`, { mode: 0o600, flush: true })
      await rename(`${path}.new`, path)
    },
    remove: async chain => {
      await rm(headFilePath(folder, chain), { force: true })
    }
  }
}
