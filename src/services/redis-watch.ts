/** Says when Redis comes and goes, and dials anew where a connection lost its answers. */
import { Cluster, type Redis } from 'ioredis'

export class RedisHealth {
  up = false
  hasConnected = false
  /** Why it refuses what is needed, though it answers, and what to do. */
  fault: string | undefined = undefined
  latencyMs: number | undefined = undefined

  set(up: boolean): void {
    this.up = up
    this.hasConnected ||= up
    this.latencyMs = undefined
  }
}

/** Called without a reason at each connection, and once an outage for each reason. */
export type OnRedis = (reason?: string) => void

type RedisError = Error & { readonly code?: string; readonly lastNodeError?: RedisError }

const askEveryMs = 1000
/** One that stays a replica is better read from than dialled all the time. */
const redialReplicaEveryMs = 10_000

export function watch(
  client: Redis | Cluster,
  onChange: OnRedis = () => {},
  health = new RedisHealth()
): void {
  // Each reason once an outage: the one that helps may come after "the connection closed".
  const reported = new Set<string>()
  const report = (reason: string) => {
    health.set(false)
    if (!reported.has(reason)) onChange(reason)
    reported.add(reason)
  }
  let redialledAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  const redial = (node: Redis, reason: string) => {
    if (node.status !== 'ready') return
    if (node === client) report(reason)
    node.disconnect(true)
  }

  /** A connection can stay open and lose its answers, or lead to a server that is no primary now. */
  function ask(node: Redis): void {
    const askedAt = performance.now()
    node.role().then(
      ([role]) => {
        const answeredAt = performance.now()
        health.latencyMs = answeredAt - askedAt
        if (role === 'master' || answeredAt - redialledAt < redialReplicaEveryMs) return
        redialledAt = answeredAt
        redial(node, 'it became a replica')
      },
      (error: Error) => {
        if (error.message.includes('timed out')) redial(node, 'it does not answer')
      }
    )
  }

  const askAll = () => {
    const nodes = client instanceof Cluster ? client.nodes('master') : [client]
    for (const node of nodes) if (node.status === 'ready') ask(node)
  }
  client.on('ready', () => {
    reported.clear()
    health.set(true)
    onChange()
    clearInterval(timer)
    timer = setInterval(askAll, askEveryMs).unref()
  })
  client.on('error', (error: RedisError) => report(reasonOf(error.lastNodeError ?? error)))
  client.on('close', () => {
    clearInterval(timer)
    // At its owner's `disconnect` the client has ended by now.
    if (client.status !== 'end') report('the connection closed')
  })
}

/** The wait before the next attempt: doubles up to 2 s, with a quarter more or less. */
export function backOff(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt, 6), 2000) * (0.75 + Math.random() / 2)
}

function reasonOf({ code, message }: RedisError): string {
  if (message.startsWith('WRONGPASS') || message.startsWith('NOAUTH')) {
    return 'the user or the password is wrong'
  }
  if (message.startsWith('All sentinels are unreachable')) return 'no Sentinel answers'
  return code ?? message.slice(0, 120)
}

/** As sessions, counts and replicas do, with a key of each type: PING alone shows no rights. */
const probe = `
redis.call('SET', KEYS[1], '1', 'PX', 1000)
redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], 'a', '1')
redis.call('HGETALL', KEYS[2])
redis.call('ZADD', KEYS[3], 1, 'a')
redis.call('ZRANGEBYSCORE', KEYS[3], 0, 1)
redis.call('ZSCORE', KEYS[3], 'a')
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return redis.call('TIME')`

const rights = 'the ACL user lacks a right: see "Rights of an ACL user" in docs/operations.md'
const ofCluster =
  'it is a node of a Cluster: set redis.cluster to the addresses of its nodes in place of redis.url'

const ofReplica = 'it is a replica and takes no writes: redis.url has to lead to the primary'

/** @returns what is wrong, and what to do; undefined where it works @throws what else it says */
export async function probeRedis(client: Redis | Cluster, prefix: string) {
  const keys = ['text', 'hash', 'set'].map(type => `${prefix}probe:${type}`)
  return await client.eval(probe, keys.length, ...keys).then(
    () => undefined,
    (error: Error) => {
      const { message } = error
      if (/^(?:MOVED|ASK) /.test(message)) return ofCluster
      if (message.includes('READONLY')) return ofReplica
      // Within a script the words are others than without.
      const isRefused = /NOPERM|can't run this command|ACL failure/.test(message)
      if (isRefused) return `${rights} (${message.slice(0, 120)})`
      throw error
    }
  )
}
