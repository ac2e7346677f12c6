/** A hash for each caller: by limit, when its bucket is full again, and the time of one request. */
import type { Cluster, Redis, Result } from 'ioredis'
import { eachMs, type Rate, roomMs } from './gcra.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    countLimit(key: string, ...args: ReadonlyArray<string | number>): Result<string, Context>
  }
}

/**
 * Adds `count`. With `room` above 0 it adds only what fits, and answers below 0 where nothing does.
 * No bucket is ever fuller than twice its size. Another rate, after a reload, keeps what was used.
 * What else stands under the key gives way: else Redis would seem to be away.
 */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local count, each, burst, room = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local entry = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(entry) == 'table' then redis.call('DEL', KEYS[1]) end
local stored, of = string.match(type(entry) == 'string' and entry or '', '^(%S+) (%S+)$')
local full = now + math.max(0, (tonumber(stored) or 0) - now) * each / (tonumber(of) or each)
full = math.min(full, now + 2 * burst * each)
local after = math.min(full + count * each, now + 2 * burst * each)
if room > 0 and after - now > room then return string.format('%.3f', now - full) end
if count > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.3f %.17g', after, each))
  local left = math.ceil(after - now)
  if redis.call('PTTL', KEYS[1]) < left then redis.call('PEXPIRE', KEYS[1], left) end
end
return string.format('%.3f', after - now)`

export type CountStore = ReturnType<typeof createRedisCounts>

/** Keys are `CALLER LIMIT`: a caller holds no blank. Answers: until a bucket is full again, in ms. */
export function createRedisCounts(redis: Redis | Cluster, prefix: string) {
  redis.defineCommand('countLimit', { numberOfKeys: 1, lua: script })
  const keyOf = (caller: string) => `${prefix}l:${caller}`

  async function add(key: string, rate: Rate, count: number, room = 0): Promise<number> {
    const blank = key.indexOf(' ')
    const args = [key.slice(blank + 1), count, eachMs(rate), rate.burst, room]
    return Number(await redis.countLimit(keyOf(key.slice(0, blank)), ...args))
  }

  return {
    tell: (key: string, rate: Rate, count: number) => add(key, rate, count),
    take: (key: string, rate: Rate) => add(key, rate, 1, roomMs(rate)),
    /** `used` are the requests that are not free again. */
    ofCaller: async (caller: string) => {
      const [fields, time] = await Promise.all([redis.hgetall(keyOf(caller)), redis.time()])
      const now = Number(time[0]) * 1000 + Number(time[1]) / 1000
      return Object.entries(fields).map(([limit, stored]) => {
        const [full, each] = stored.split(' ').map(Number) as [number, number]
        return { limit, used: (full - now) / each }
      })
    },
    forget: async (caller: string): Promise<unknown> => await redis.del(keyOf(caller))
  }
}
