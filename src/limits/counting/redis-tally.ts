/** Counts requests in Redis, for all replicas: one round trip for all limits of a request. */
import type { Cluster, Redis, Result } from 'ioredis'
import type { TallyEntry, Tally, Verdict } from './rules.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeLimits(keyCount: number, ...keysAndRules: Array<string | number>): Result<number[], Context>
  }
}

/**
 * `decide` of rules.ts in Lua, by Redis' clock, so that replicas need no common time. For each key:
 * kind, max, window, burst, unreported, enforced. ARGV[1]: whether to count one more request; the
 * last: another clock's time, or nothing. A key of another type is answered by -1, and all others
 * are counted: otherwise it would keep from Redis what other callers' leases have used.
 */
const script = `
local now = tonumber(ARGV[#ARGV])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local consumes, slices = ARGV[1] == '1', 16
local looks, refused = {}, false
for i, key in ipairs(KEYS) do
  local at = (i - 1) * 6 + 1
  local kind, max, window, burst, unreported = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local state = {}
  local kept = redis.pcall('GET', key)
  local foreign = type(kept) == 'table'
  if foreign and not string.find(kept.err, 'WRONGTYPE', 1, true) then return kept end
  for word in string.gmatch(type(kept) == 'string' and kept or '', '%S+') do
    state[#state + 1] = tonumber(word) or 0
  end
  local it = { key = key, unreported = unreported, window = window }
  if foreign then
    it.foreign, it.unreported, it.remaining, it.reset, it.retry = true, 0, 0, 0, 0
  elseif kind == 'fixed' then
    local count, ends = 0, now + window
    if state[2] and now < state[2] then count, ends = state[1], math.min(state[2], now + window) end
    count = count + unreported
    it.exceeded, it.remaining, it.reset = count + 1 > max, math.max(0, max - count), ends - now
    it.retry = it.exceeded and it.reset or 0
    it.plus = function (more) return { count + more, ends } end
  elseif kind == 'sliding' then
    local slice = math.ceil(window / slices)
    local newest = math.floor(now / slice)
    local counts, used = { 0 }, 0
    if #state > 2 and now < (state[2] + slices + 1) * state[1] then
      if state[1] ~= slice then
        for place = 3, #state do counts[1] = counts[1] + state[place] end
      else
        local passed = math.max(0, newest - state[2])
        for place = 1, slices + 1 do counts[place] = place <= passed and 0 or state[place - passed + 2] end
      end
    end
    counts[1] = counts[1] + unreported
    for place = 1, #counts do used = used + counts[place] end
    local function leaves (place) return (newest - place + 1 + slices + 1) * slice - now end
    it.exceeded, it.remaining, it.reset, it.retry = used + 1 > max, math.max(0, max - used), 0, 0
    for place = #counts, 1, -1 do if counts[place] > 0 then it.reset = leaves(place) end end
    if it.exceeded then
      local left, oldest = used, #counts
      while oldest > 1 do
        left = left - counts[oldest]
        if left + 1 <= max then break end
        oldest = oldest - 1
      end
      it.retry = leaves(oldest)
    end
    it.plus = function (more)
      counts[1] = counts[1] + more
      return { slice, newest, unpack(counts) }
    end
  else
    local debt = 0
    if state[5] then
      debt = math.max(0, state[3] - math.max(0, now - state[2]) * state[4])
      if state[4] ~= max or state[5] ~= window then
        debt = math.min(burst * window, math.floor(debt * window / state[5] + 0.5))
      end
    end
    debt = debt + unreported * window
    local room = burst * window - debt
    it.exceeded, it.remaining, it.reset = room < window, math.max(0, math.floor(room / window)), math.ceil(debt / max)
    it.retry = it.exceeded and math.ceil((window - room) / max) or 0
    it.plus = function (more)
      local after = debt + more * window
      return { now + after / max, now, after, max, window }
    end
  end
  if it.exceeded and ARGV[at + 6] == '1' then refused = true end
  looks[i] = it
end
local answer = {}
for i, it in ipairs(looks) do
  local counts = consumes and not refused and not it.exceeded and not it.foreign
  if counts or it.unreported > 0 then
    local state = it.plus(counts and 1 or 0)
    for place = 1, #state do state[place] = string.format('%.3f', state[place]):gsub('%.000$', '') end
    redis.call('SET', it.key, table.concat(state, ' '), 'PX', 2 * it.window + 1)
  end
  answer[#answer + 1] = it.foreign and -1 or it.exceeded and 1 or 0
  answer[#answer + 1] = counts and it.remaining - 1 or it.remaining
  answer[#answer + 1] = it.reset
  answer[#answer + 1] = it.retry
end
return answer`

const perKey = 4

/**
 * Commands of one turn of the event loop leave in one write: under load these are of several users.
 */
function gather(redis: Redis | Cluster): void {
  if (redis.isCluster) return
  const { stream } = redis as Redis
  // Undefined before the first connection.
  if (stream === undefined || stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}

/** The part of a key that decides its slot. Anchored, since keys contain ids of back-ends. */
const hashTag = /^[^{]*\{([^}]+)\}/

/**
 * In a Cluster a script may only touch keys of one slot. The caller is the hash tag: all limits of
 * one user share a slot, and a request that counts a user and an address makes two calls at once.
 * @param now another clock than Redis' own, for tests
 */
export function createRedisTally(
  redis: Redis | Cluster,
  prefix: string,
  now?: () => number
): Tally {
  redis.defineCommand('takeLimits', { lua: script })
  const take = async (entries: readonly TallyEntry[], consumes: boolean): Promise<Verdict[]> => {
    const keys = entries.map(({ key }) => `${prefix}limit:${key}`)
    const rules = entries.flatMap(
      ({ rule: { kind, max, windowMs, burst, enforced }, unreported }) => [
        kind,
        max,
        windowMs,
        burst,
        unreported,
        enforced ? 1 : 0
      ]
    )
    gather(redis)
    const answer: unknown = await redis.takeLimits(
      keys.length,
      ...keys,
      consumes ? 1 : 0,
      ...rules,
      now === undefined ? '' : now()
    )
    if (
      !Array.isArray(answer) ||
      answer.length !== keys.length * perKey ||
      !answer.every(Number.isFinite)
    ) {
      throw new Error('Redis gave an answer that makes no sense')
    }
    const numbers = answer as number[]
    return keys.map((key, index) => {
      const [exceeded = 0, remaining = 0, resetMs = 0, retryMs = 0] = numbers.slice(
        index * perKey,
        (index + 1) * perKey
      )
      const verdict = { exceeded: exceeded === 1, remaining, resetMs, retryMs }
      return exceeded === -1 ? { ...verdict, foreignKey: key } : verdict
    })
  }
  const takeBySlot: typeof take = async (entries, consumes) => {
    const groups = Map.groupBy(entries, ({ key }) => hashTag.exec(key)?.[1] ?? key)
    if (groups.size === 1) return take(entries, consumes)
    const taken = await Promise.all(
      [...groups.values()].map(async group => ({ group, verdicts: await take(group, consumes) }))
    )
    const verdictOf = new Map(
      taken.flatMap(({ group, verdicts }) =>
        group.map((entry, index) => [entry, verdicts[index] as Verdict] as const)
      )
    )
    return entries.map(entry => verdictOf.get(entry) as Verdict)
  }
  const run = redis.isCluster ? takeBySlot : take
  return {
    consume: entries => run(entries, true),
    report: entries => run(entries, false)
  }
}
