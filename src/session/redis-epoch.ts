/** The epoch in Redis: on each primary of a Cluster, of which the greatest counts. */
import { orUnavailable, type RedisContext } from './redis-context.ts'
import { scripts } from './redis-scripts.ts'
import { revocationsKeptMs } from './revocation-journal.ts'
import { type EpochStore, StoreUnavailable } from './store.ts'

/** @param keysOnEach a key on each primary of a Cluster, as its slots are now */
export function createRedisEpoch(
  { redis, keys, write }: RedisContext,
  keysOnEach: (plain: string) => readonly string[]
) {
  const epochKeys = () => keysOnEach(keys.epoch)
  let lastBump = { epoch: 0, at: -Infinity }

  async function writeTo(targets: readonly string[], epoch: number): Promise<void> {
    await Promise.all(
      targets.map(
        async key => await write(key, 'every', async on => await on.sessionEpoch(key, epoch, 0))
      )
    )
  }

  /** Writes the latest bump again, in case a new primary does not have it. */
  function replayBump(): void {
    if (performance.now() - lastBump.at > revocationsKeptMs) return
    for (const key of epochKeys()) {
      redis.eval(scripts.sessionEpoch, 1, key, lastBump.epoch, 0).catch(() => {})
    }
  }

  async function read(): Promise<number> {
    const targets = epochKeys()
    const values = await orUnavailable(Promise.all(targets.map(async key => await redis.get(key))))
    const epochs = values.map(value => Number(value ?? 0))
    // Without a number, live and ended sessions could not be told apart.
    if (!epochs.every(Number.isSafeInteger)) {
      throw new StoreUnavailable(new Error(`${keys.epoch} in Redis is not a number`))
    }
    const greatest = Math.max(...epochs)
    // Primaries that are new or lost the epoch get it from the others.
    const behind = targets.filter((_key, index) => epochs[index] !== greatest)
    if (behind.length > 0) writeTo(behind, greatest).catch(() => {})
    return greatest
  }

  const epoch: EpochStore = {
    epoch: read,
    async bumpEpoch(above) {
      const [home = keys.epoch, ...others] = epochKeys()
      const greatest = above ?? (await read())
      const bumped = await write(
        home,
        'every',
        async on => await on.sessionEpoch(home, greatest, 1)
      )
      lastBump = { epoch: bumped, at: performance.now() }
      await writeTo(others, bumped)
      return bumped
    },
    async confirmEnds() {
      await Promise.all(epochKeys().map(async key => await write(key, 'every', async () => {})))
    },
    async restoreEpoch(wanted) {
      await writeTo(epochKeys(), wanted)
    }
  }
  return { epoch, replayBump }
}
