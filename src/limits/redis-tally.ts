/** Counts requests in Redis, for all replicas: one round trip for all limits of a request. */
import type { Cluster, Redis, Result } from 'ioredis'
import type { Entry, Tally, Verdict } from './rules.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeLimits (keyCount: number, ...keysAndRules: Array<string | number>): Result<number[], Context>
  }
}

/** What `decide` of rules.ts does, by Redis' own clock. For each key: kind, max, window, burst, owed, enforced. ARGV[1]: whether one more is wanted. */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local wants = ARGV[1] == '1'
local looks, refused = {}, false
for i, key in ipairs(KEYS) do
  local at = (i - 1) * 6 + 1
  local kind, max, window, burst, owed = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local a, b, c = string.match(redis.call('GET', key) or '', '^(%S+) (%S+) (%S+)$')
  a, b, c = tonumber(a), tonumber(b), tonumber(c)
  local it = { key = key, owed = owed, window = window }
  if kind == 'fixed' then
    local count, ends = 0, now + window
    if b and now < b then count, ends = a, b end
    count = count + owed
    it.exceeded, it.remaining, it.reset = count + 1 > max, math.max(0, max - count), ends - now
    it.retry = it.exceeded and it.reset or 0
    it.plus = function (more) return count + more, ends, 0 end
  elseif kind == 'sliding' then
    local start = math.floor(now / window) * window
    local current, previous = 0, 0
    if a == start then current, previous = b, c elseif a == start - window then previous = b end
    current = current + owed
    local elapsed = now - start
    local used = current + previous * (1 - elapsed / window)
    it.exceeded, it.remaining = used + 1 > max, math.max(0, math.floor(max - used))
    it.reset = current > 0 and 2 * window - elapsed or window - elapsed
    it.retry = 0
    if it.exceeded then
      local next = window - elapsed
      if current > max - 1 then next = next + window * (1 - (max - 1) / current)
      elseif previous > 0 then next = math.min(next, window * (1 - (max - 1 - current) / previous) - elapsed) end
      it.retry = math.max(1, math.ceil(next))
    end
    it.plus = function (more) return start, current + more, previous end
  else
    local each = window / max
    local full = math.max(a or 0, now) + owed * each
    local room = burst * each - (full - now)
    it.exceeded, it.remaining, it.reset = room < each, math.max(0, math.floor(room / each)), math.ceil(full - now)
    it.retry = it.exceeded and math.max(1, math.ceil(each - room)) or 0
    it.plus = function (more) return full + more * each, 0, 0 end
  end
  if it.exceeded and ARGV[at + 6] == '1' then refused = true end
  looks[i] = it
end
local answer = {}
for i, it in ipairs(looks) do
  local counts = wants and not refused and not it.exceeded
  if counts or it.owed > 0 then
    local a, b, c = it.plus(counts and 1 or 0)
    redis.call('SET', it.key, string.format('%.3f %.3f %.3f', a, b, c), 'PX', 2 * it.window)
  end
  answer[#answer + 1] = it.exceeded and 1 or 0
  answer[#answer + 1] = counts and it.remaining - 1 or it.remaining
  answer[#answer + 1] = it.reset
  answer[#answer + 1] = it.retry
end
return answer`

const perKey = 4

/**
 * In a Cluster a script may only touch keys of one slot: whoever is counted is the hash tag, so that all limits of one
 * user are together, and a request that counts a user and an address has one call for each, at once.
 */
export function createRedisTally (redis: Redis | Cluster, prefix: string): Tally {
  redis.defineCommand('takeLimits', { lua: script })
  const take = async (entries: readonly Entry[], wants: boolean): Promise<Verdict[]> => {
    const keys = entries.map(({ key }) => `${prefix}limit:${key}`)
    const rules = entries.flatMap(({ rule: { kind, max, windowMs, burst, enforced }, owed }) => [kind, max, windowMs, burst, owed, enforced ? 1 : 0])
    const answer: unknown = await redis.takeLimits(keys.length, ...keys, wants ? 1 : 0, ...rules)
    if (!Array.isArray(answer) || answer.length !== keys.length * perKey || !answer.every(Number.isFinite)) throw new Error('Redis gave an answer that makes no sense')
    const numbers = answer as number[]
    return entries.map((_, index) => {
      const [exceeded = 0, remaining = 0, resetMs = 0, retryMs = 0] = numbers.slice(index * perKey, (index + 1) * perKey)
      return { exceeded: exceeded === 1, remaining, resetMs, retryMs }
    })
  }
  if (!redis.isCluster) return { take }
  return {
    take: async (entries, wants) => {
      const groups = Map.groupBy(entries, ({ key }) => /\{(.+?)\}/.exec(key)?.[1] ?? key)
      if (groups.size === 1) return take(entries, wants)
      const taken = await Promise.all([...groups.values()].map(async group => ({ group, verdicts: await take(group, wants) })))
      const verdictOf = new Map(taken.flatMap(({ group, verdicts }) => group.map((entry, index) => [entry, verdicts[index] as Verdict] as const)))
      return entries.map(entry => verdictOf.get(entry) as Verdict)
    }
  }
}
