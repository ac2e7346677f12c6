/**
 * Deletes chains that no process writes any more, such as those of replicas that were taken away,
 * once their last line is older than `keep`. A line of the process's chain says so before.
 */
import { unlink } from 'node:fs/promises'
import type { Chain, ChainOptions } from './chain.ts'
import { chainsIn, lockChain, setAside } from './chain-files.ts'
import { type HeadStore, readHead } from './head.ts'
import type { ReadLine } from './line.ts'
import { lastLineOf } from './tail.ts'

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
  // A crash may have left a last file without a line.
  for (const { path } of chainsIn(folder).get(id)?.toReversed() ?? []) {
    const last = await lastLineOf(path, keys)
    if (last !== undefined) return now() - Date.parse(last.at) >= keepMs ? last : undefined
  }
  return undefined
}

/** @returns whether the stored head proves that lines behind the last one were deleted */
async function isCut(
  id: string,
  { seq, mac }: ReadLine,
  { heads, keys }: AbandonedOptions
): Promise<boolean> {
  const text = await heads.read(id)
  if (text === undefined) return false
  const head = readHead(id, text, keys)
  return head === undefined || head.seq > seq || (head.seq === seq && head.mac !== mac)
}

/**
 * The line goes before the head, the head before the files, and the newest file before the others:
 * so what a crash in between leaves is a chain without a head, which begins at its first line and
 * is deleted the next time. A chain whose end was cut stays, for `verify` to find.
 */
async function remove(
  id: string,
  last: ReadLine,
  chain: Chain,
  options: AbandonedOptions
): Promise<void> {
  if (await isCut(id, last, options)) return
  const { folder, heads } = options
  const { seq: through, mac: throughMac } = last
  const paths: string[] = []
  for (const file of chainsIn(folder).get(id)?.toReversed() ?? []) paths.push(await setAside(file))
  chain.addControl('pruned', { abandoned: { chain: id, through, throughMac } })
  await chain.write()
  await chain.sync()
  await heads.remove(id)
  for (const path of paths) await unlink(path)
}
