/** Replicas of the session engine on a Redis of their own, without the rest of the gateway. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { createRedisDialler } from '../src/services/redis.ts'
import { followRedis } from '../src/session/redis-invalidation.ts'
import { createRedisStore } from '../src/session/redis-store.ts'
import { createSeal } from '../src/session/seal.ts'
import { createSessions, type NewSession, type Sessions } from '../src/session/session.ts'

const prefix = 'cg:'

/** @returns how to end it */
export async function startRedis(port: number): Promise<() => void> {
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes('Ready to accept')) break
  }
  server.stdout.resume()
  return () => server.kill()
}

const dial = (port: number) =>
  createRedisDialler(
    {
      url: `redis://127.0.0.1:${port}`,
      sentinels: [],
      primary: '',
      cluster: [],
      tls: false,
      sentinelTls: false,
      prefix,
      connectTimeout: 10_000,
      commandTimeout: 10_000
    },
    '.'
  )

/** A client of its own, once it is ready. */
export async function readyClient(port: number) {
  const up = Promise.withResolvers<void>()
  const client = dial(port).client({ onUp: up.resolve, onDown: () => {} })
  await up.promise
  return client
}

interface Options {
  readonly port: number
  readonly idleMs?: number
}

export interface Replica {
  readonly sessions: Sessions
  readonly client: Awaited<ReturnType<typeof readyClient>>
  readonly close: () => void
}

/** A replica with its clients, news and memory. */
export async function openReplica(options: Options): Promise<Replica> {
  const { port, idleMs = 1_800_000 } = options
  const client = await readyClient(port)
  const following = Promise.withResolvers<void>()
  let end = () => {}
  const store = createRedisStore({
    redis: client,
    prefix,
    follow: (follower, names) => {
      end = followRedis({
        dial: () => dial(port).trackingConnections(client),
        onTopology: () => {},
        follower: {
          ...follower,
          onUp: () => {
            follower.onUp()
            following.resolve()
          }
        },
        names,
        maxStalenessMs: 2000
      })
    }
  })
  const sessions = createSessions({
    store,
    seal: createSeal(['a secret for the bench, long enough for anyone']),
    lifeTimes: { idle: idleMs, absolute: 28_800_000, remembered: {} },
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000
  })
  await following.promise
  const close = () => {
    end()
    client.disconnect()
  }
  return { sessions, client, close }
}

/** The sign-in of a usual user, of whom there are half as many as sessions. */
export const opening = (n: number): NewSession => ({
  identity: {
    id: `user-${Math.floor(n / 2)}`,
    username: `user.${Math.floor(n / 2)}`,
    name: 'A Name of Usual Length',
    roles: ['admin', 'user'],
    profile: { email: 'somebody@example.com', title: 'Administrator' }
  },
  source: 'upstream-login:backend',
  credential: { token: 'x'.repeat(40) },
  remembered: false,
  address: '192.0.2.1',
  agent:
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36'
})
