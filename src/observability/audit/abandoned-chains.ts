/**
 * Deletes chains that no process writes any more, such as those of replicas that were taken away,
 * once their last line is older than `keep`. A line of the process's chain says so before.
 */
import { unlink } from 'node:fs/promises'
import { type Chain, type ChainOptions, lastLineOf } from './chain.ts'
import { chainsIn, lockChain } from './chain-files.ts'
import type { HeadStore } from './head.ts'
import type { ReadLine } from './line.ts'

interface AbandonedOptions extends ChainOptions {
  readonly heads: HeadStore
}

/** @param chain of this process */
export async function pruneAbandonedChains(chain: Chain, options: AbandonedOptions): Promise<void> {
  const { folder, keepMs } = options
  if (keepMs === 0) return
  for (const id of chainsIn(folder).keys()) {
    const release = id === chain.id ? undefined : lockChain(folder, id)
    if (release === undefined) continue
    try {
      const last = await outdatedEndOf(id, options)
      if (last !== undefined) await remove(id, last, chain, options)
    } finally {
      release()
    }
  }
}

/** @returns the last line of a chain whose lines are all older than `keep` */
async function outdatedEndOf(
  id: string,
  { folder, keys, keepMs, now }: AbandonedOptions
): Promise<ReadLine | undefined> {
  const path = chainsIn(folder).get(id)?.at(-1)?.path
  const last = path === undefined ? undefined : await lastLineOf(path, keys)
  return last !== undefined && now() - Date.parse(last.at) >= keepMs ? last : undefined
}

/**
 * The head goes before the files, and the newest file before the others: so what a crash in between
 * leaves is a chain without a head, which begins at its first line and is deleted the next time.
 */
async function remove(
  id: string,
  { seq, mac }: ReadLine,
  chain: Chain,
  { folder, heads }: AbandonedOptions
): Promise<void> {
  chain.addControl('pruned', { abandoned: { chain: id, through: seq, throughMac: mac } })
  await chain.write()
  await chain.sync()
  // A store that is away must not keep the ledger from being written: the next time does it.
  const isForgotten = await heads.remove(id).then(
    () => true,
    () => false
  )
  if (!isForgotten) return
  for (const { path } of chainsIn(folder).get(id)?.toReversed() ?? []) await unlink(path)
}
