/** What may happen to a Redis at any time. */
import { setTimeout as wait } from 'node:timers/promises'
import type { FaultyProxy, Mode } from '../../support/faulty-proxy.ts'
import type { Random } from '../../support/random.ts'
import type { TestRedis } from '../../support/redis.ts'

/** Nobody listens on it. */
const nowhere = '1'

/** Something happens to Redis, or on the way to it, lasts, and is over; gives its name. */
export async function misfortune(
  random: Random,
  redis: TestRedis,
  proxy: FaultyProxy
): Promise<string> {
  const ms = random.integer(100, 2500)
  const { cli } = redis
  const modes: readonly Mode[] = [
    'lose-answers',
    'swallow',
    'garbage',
    'refuse',
    'cut',
    'trickle',
    'flap',
    { delayMs: 100 },
    { delayMs: 600 }
  ]
  const kinds: Record<string, () => Promise<void>> = {
    proxy: async () => {
      await proxy.set(random.pick(modes), random.pick(['all', 'all', 'there', 'news'] as const))
      await wait(ms)
      await proxy.set('pass', 'news')
      await proxy.set('pass')
    },
    killed: async () => {
      await redis.kill()
      await wait(ms)
      await redis.start()
    },
    frozen: async () => {
      redis.signal('SIGSTOP')
      await wait(ms)
      redis.signal('SIGCONT')
    },
    cut: async () => {
      for (const type of ['normal', 'pubsub']) {
        if (random.chance(0.7)) await cli('CLIENT', 'KILL', 'TYPE', type)
      }
    },
    full: async () => {
      await cli('CONFIG', 'SET', 'maxmemory', '1')
      await wait(ms)
      await cli('CONFIG', 'SET', 'maxmemory', '0')
    },
    replica: async () => {
      await cli('REPLICAOF', '127.0.0.1', nowhere)
      await wait(ms)
      await cli('REPLICAOF', 'NO', 'ONE')
    }
  }
  const kind = random.pick(['proxy', 'proxy', 'proxy', 'proxy', ...Object.keys(kinds)])
  await kinds[kind]?.()
  return kind
}
