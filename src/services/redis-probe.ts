/** Whether Redis does what sessions and counts need: a connection that answers PING may refuse it. */
import type { Cluster, Redis } from 'ioredis'

const script = `
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

/**
 * @param prefix the beginning of all keys
 * @returns what is wrong, and what to do; undefined where it works, or is away for the moment
 */
export async function probeRedis(
  client: Redis | Cluster,
  prefix: string
): Promise<string | undefined> {
  const keys = ['text', 'hash', 'set'].map(type => `${prefix}probe:${type}`)
  return await client.eval(script, keys.length, ...keys).then(
    () => undefined,
    ({ message }: Error) => {
      if (/^(?:MOVED|ASK) /.test(message)) return ofCluster
      // Within a script the words are others than without.
      const isRefused = /NOPERM|can't run this command|ACL failure/.test(message)
      return isRefused ? `${rights} (${message.slice(0, 120)})` : undefined
    }
  )
}
