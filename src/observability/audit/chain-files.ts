/**
 * The files of the ledger in a folder: `audit-CHAIN-NUMBER.jsonl`, the oldest with the lowest
 * number. Each process that writes has a chain of its own.
 * `.pruned` behind the name: the file is about to be deleted. It belongs to its chain until then.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface ChainFile {
  readonly number: number
  readonly path: string
}

const asideSuffix = '.pruned'
const filePattern = /^audit-[0-9a-f]{12}-[0-9]{6,9}\.jsonl(?:\.pruned)?$/
const chainAt = 'audit-'.length
const numberAt = 'audit-0123456789ab-'.length

export const newChainId = (): string => randomBytes(6).toString('hex')

export function chainFilePath(folder: string, chain: string, number: number): string {
  return join(folder, `audit-${chain}-${String(number).padStart(6, '0')}.jsonl`)
}

export const headFilePath = (folder: string, chain: string): string =>
  join(folder, `audit-${chain}.head`)

export const isChainId = (text: string): boolean => /^[0-9a-f]{12}$/.test(text)

/** Whether a process wrote the chain in this folder: its lock stays when the files are deleted. */
export const hasLock = (folder: string, chain: string): boolean =>
  existsSync(join(folder, `audit-${chain}.lock`))

/**
 * The chains of a folder by their ids, in order; the files of each, the oldest first. Links, pipes
 * and devices are no files of a ledger: reading one might never end.
 */
export function chainsIn(folder: string): Map<string, ChainFile[]> {
  const chains = new Map<string, ChainFile[]>()
  const names = readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ name }) => name)
  for (const name of names.toSorted()) {
    const chain = chainOf(name)
    if (chain === undefined) continue
    const files = chains.get(chain) ?? []
    files.push({ number: numberOf(name), path: join(folder, name) })
    chains.set(chain, files)
  }
  for (const files of chains.values()) files.sort((a, b) => a.number - b.number)
  return chains
}

/**
 * Renames a file that will be deleted. Where it cannot be deleted this fails, before a line says
 * that it is gone.
 * @returns its path
 */
export async function setAside({ path }: ChainFile): Promise<string> {
  if (path.endsWith(asideSuffix)) return path
  await rename(path, path + asideSuffix)
  return path + asideSuffix
}

function chainOf(name: string): string | undefined {
  return filePattern.test(name) ? name.slice(chainAt, numberAt - 1) : undefined
}

function numberOf(name: string): number {
  return Number.parseInt(name.slice(numberAt), 10)
}

/**
 * Takes a chain for this process. The kernel holds the lock, through SQLite, since Node has no file
 * locks: it ends with the process however that ends, and holds between containers that share a
 * volume. A file with a process id would have to guess whether its process is alive.
 * @returns what releases it; undefined while another process has it
 */
export function lockChain(folder: string, chain: string): (() => void) | undefined {
  const database = new DatabaseSync(join(folder, `audit-${chain}.lock`), { timeout: 0 })
  try {
    database.exec('PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE')
    return () => database.close()
  } catch (error) {
    database.close()
    if (isLocked(error)) return undefined
    throw error
  }
}

/** https://sqlite.org/rescode.html#busy */
function isLocked(error: unknown): boolean {
  return error instanceof Error && error.message.includes('database is locked')
}
