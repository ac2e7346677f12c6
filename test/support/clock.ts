/** Time that passes only when a test says so. */
import { Cluster, type Redis } from 'ioredis'
import { steadyClock } from '../../src/steady-clock.ts'

/** The clock of this process stands still, but for what is passed. Call it before the gateway starts. */
export function stopClock(cleanUp: (undo: () => unknown) => void): (ms: number) => void {
  const { now } = Date
  const { now: steady } = steadyClock
  let time = now()
  Date.now = () => time
  steadyClock.now = () => time
  cleanUp(() => {
    Date.now = now
    steadyClock.now = steady
  })
  return ms => {
    time += ms
  }
}

/** The wall clock of this process goes on, from other times: as after NTP or `date -s`. */
export function wallClock(cleanUp: (undo: () => unknown) => void): (ms: number) => void {
  const { now } = Date
  let shift = 0
  Date.now = () => now() + shift
  cleanUp(() => {
    Date.now = now
  })
  return ms => {
    shift += ms
  }
}

// Time stands still within a script, so that none is lost between asking and setting. The times of
// failed sign-ins are values.
const shorten = `
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    redis.call('ZINCRBY', KEYS[1], -ARGV[1], member)
  end
elseif string.find(KEYS[1], '{cg}:f:', 1, true) == 1 then
  local earlier = string.format('%.3f', redis.call('GET', KEYS[1]) - ARGV[1])
  redis.call('SET', KEYS[1], earlier, 'KEEPTTL')
end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 then redis.call('PEXPIRE', KEYS[1], left - ARGV[1]) end`

/** Takes so much of the time to live of every key, and of the times that are kept in Redis. */
export async function passTime(client: Redis | Cluster, ms: number): Promise<void> {
  for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
    for (const key of await node.keys('*')) await node.eval(shorten, 1, key, ms)
  }
}
