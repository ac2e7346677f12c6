/**
 * A Cluster's additions to its client: a key on each primary, and a connection of its own to each
 * for replicated writes.
 */
import calculateSlot from 'cluster-key-slot'
import type { Cluster, Redis } from 'ioredis'
import { splitHostPort } from '../config/schema/host-port.ts'
import { createReplicatedWrites, type ReplicatedWrites } from './redis-replicated.ts'
import type { Address } from './redis-sentinels.ts'

/** `HOST:PORT` of the primary of a slot, then of its replicas. */
const nodesOf = (cluster: Cluster, slot: number): readonly string[] => cluster.slots[slot] ?? []

/** After these, slots may have moved. */
const slotEvents = ['refresh', '+node', '-node', 'ready']
/** Even where a primary has one slot of 16384, a tag in it is found among so many. */
const maxTags = 400_000

/**
 * Tags that make a key belong to each primary: `key:{tag}`. The same in every process that sees the
 * same slots. Found anew when slots have moved.
 */
export function createTags(cluster: Cluster): () => ReadonlyMap<string, string> {
  let tags: Map<string, string> | undefined
  for (const event of slotEvents) {
    cluster.on(event, () => {
      tags = undefined
    })
  }
  return () => {
    tags ??= findTags(cluster)
    return tags
  }
}

function findTags(cluster: Cluster): Map<string, string> {
  const primaries = new Set<string>()
  // While a Cluster is set up or mended, some slots have no primary.
  for (let slot = 0; slot < cluster.slots.length; slot++) {
    const [primary] = nodesOf(cluster, slot)
    if (primary !== undefined) primaries.add(primary)
  }
  const tags = new Map<string, string>()
  for (let number = 0; number < maxTags && tags.size < primaries.size; number++) {
    const [primary] = nodesOf(cluster, calculateSlot(`{${number}}`))
    if (primary !== undefined && !tags.has(primary)) tags.set(primary, String(number))
  }
  return tags
}

/** One key for each primary: the plain one where it belongs, a tagged one on the others. */
export function keysOnEach(
  cluster: Cluster,
  tags: ReadonlyMap<string, string>,
  plain: string
): string[] {
  const [home] = nodesOf(cluster, calculateSlot(plain))
  const others = Array.from(tags).filter(([primary]) => primary !== home)
  return [plain, ...others.map(([, tag]) => `${plain}:{${tag}}`)]
}

interface Options {
  readonly cluster: Cluster
  readonly tags: () => ReadonlyMap<string, string>
  readonly barrierKey: string
  readonly waitMs: number
  readonly dial: (address: Address) => Redis
  readonly onRefused: () => void
}

export function createClusterWrites(options: Options): ReplicatedWrites {
  const { cluster, tags, barrierKey, waitMs, dial, onRefused } = options
  const lines = new Map<string, { readonly tag: string; readonly writes: ReplicatedWrites }>()

  function connect(): void {
    const tagsByNode = tags()
    for (const [node, { tag, writes }] of lines) {
      if (tagsByNode.get(node) === tag) continue
      writes.close()
      lines.delete(node)
    }
    for (const [node, tag] of tagsByNode) {
      if (lines.has(node)) continue
      const slot = calculateSlot(`{${tag}}`)
      const writes = createReplicatedWrites({
        primary: dial(splitHostPort(node)),
        barrierKey: `${barrierKey}:{${tag}}`,
        waitMs,
        expected: () => nodesOf(cluster, slot).slice(1).map(splitHostPort),
        onRefused
      })
      lines.set(node, { tag, writes })
    }
  }

  connect()
  for (const event of slotEvents) cluster.on(event, connect)
  return {
    run: async (key, confirmation, write) => {
      const [node = ''] = nodesOf(cluster, calculateSlot(key))
      const line = lines.get(node)
      if (line === undefined) throw new Error('no primary of the Cluster is known to hold the key')
      return await line.writes.run(key, confirmation, write)
    },
    close: () => {
      for (const { writes } of lines.values()) writes.close()
    }
  }
}
