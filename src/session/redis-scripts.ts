/** The session store's Lua scripts. Each touches keys of one slot only, as a Cluster requires. */
import type { Cluster, Redis, Result } from 'ioredis'
import { tombstoneMark } from './store.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    sessionCreate(
      key: string,
      clock: string,
      record: string,
      ttlMs: number
    ): Result<number, Context>
    sessionRead(key: string, clock: string): Result<[string, number] | null, Context>
    sessionTouch(
      key: string,
      clock: string,
      ttlMs: number,
      aboveMs: number
    ): Result<number, Context>
    sessionTouchAfterUse(
      key: string,
      clock: string,
      ttlMs: number,
      aboveMs: number
    ): Result<number, Context>
    sessionEnd(
      key: string,
      clock: string,
      tombstone: string,
      ttlMs: number
    ): Result<number, Context>
    sessionReplace(key: string, from: string, to: string): Result<number, Context>
    sessionNote(key: string, until: number, member: string): Result<string[], Context>
    sessionNotes(key: string): Result<string[], Context>
    usersEnter(key: string, until: number, member: string): Result<number, Context>
    usersPresent(key: string, max: number): Result<string[], Context>
    usersAnnounce(key: string, digest: string, before: string): Result<number, Context>
    sessionEpoch(key: string, atLeast: number, more: number): Result<number, Context>
    sessionFence(
      lock: string,
      fence: string,
      owner: string,
      ttlMs: number,
      contestedMs: number
    ): Result<[string, number] | null, Context>
    sessionUnlock(
      lock: string,
      fence: string,
      owner: string,
      isSettled: 0 | 1
    ): Result<number, Context>
  }
}

// Redis' own clock, in microseconds: those of replicas may differ and jump.
const time = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`

const eachNote = `
local flat = redis.call('HGETALL', KEYS[1])
for index = 1, #flat, 2 do
  local member = flat[index]
  local noted, ends = string.match(flat[index + 1], '^(%d+) (%d+)$')
  ends = tonumber(ends or 0)`

// A record outlives its clock by at most the clock's time to live: prolonging a record is
// announced, so it is done only where the clock would outlive it.
const outliveClock = `redis.call('PEXPIRE', KEYS[1], 2 * ARGV[1])`
const isTombstone = `string.sub(value, 1, 1) == '${tombstoneMark}'`

/** The scripts on records take the record's key and that of its clock. */
export const scripts = {
  sessionCreate: `
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', 2 * ARGV[2], 'NX') then return 0 end
redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
return 1`,
  // One reply, so that value and time to live belong together.
  sessionRead: `
local value = redis.call('GET', KEYS[1])
local ttl = redis.call('PTTL', KEYS[1])
if not value or ttl < 0 then return nil end
if ${isTombstone} then return { value, ttl } end
local left = redis.call('PTTL', KEYS[2])
if left <= 0 then return nil end
return { value, left }`,
  // A late call must not restart the clock of an ended session. Takes back the mark of a touch
  // after use, unless Redis is full.
  sessionTouch: `
if redis.call('PTTL', KEYS[2]) <= tonumber(ARGV[2]) then return 0 end
if redis.pcall('SET', KEYS[2], '', 'PX', ARGV[1]).err then
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then ${outliveClock} end
return 1`,
  // The clock holds a mark until the next use. A full Redis refuses the mark: then the session
  // keeps the time that its last use gave it.
  sessionTouchAfterUse: `
if redis.call('PTTL', KEYS[2]) <= tonumber(ARGV[2]) then return 0 end
if redis.call('GET', KEYS[2]) ~= '' then return 0 end
if redis.pcall('SET', KEYS[2], 'after-use', 'PX', ARGV[1]).err then return 0 end
return ${outliveClock}`,
  // A full Redis refuses the tombstone, but can delete: the end matters more than its reason.
  sessionEnd: `
local value = redis.call('GET', KEYS[1])
if not value or ${isTombstone} then return 0 end
if redis.call('DEL', KEYS[2]) == 0 then return 0 end
if redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]).err then redis.call('DEL', KEYS[1]) end
return 1`,
  sessionReplace: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`,
  // A hash: a field for each session with when it was noted and until when it counts, and in "#"
  // the latest moment of them. It lives as long as the latest of the sessions that it is about.
  sessionNote: `${time}
local at = math.max(now, tonumber(redis.call('HGET', KEYS[1], '#') or 0) + 1)
local written = string.format('%.0f', at)
redis.call('HSET', KEYS[1], ARGV[2], written .. ' ' .. ARGV[1], '#', written)
local kept, last = {}, 0
${eachNote}
  if noted and ends * 1000 <= now then
    redis.call('HDEL', KEYS[1], member)
  elseif noted then
    kept[#kept + 1] = member
    kept[#kept + 1] = noted
    last = math.max(last, ends)
  end
end
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
return kept`,
  sessionNotes: `${time}
local kept = {}
${eachNote}
  if ends * 1000 > now then
    kept[#kept + 1] = member
    kept[#kept + 1] = noted
  end
end
return kept`,
  usersEnter: `${time}
redis.call('ZADD', KEYS[1], 'GT', ARGV[1], ARGV[2])
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now / 1000))`,
  usersPresent: `${time}
local from = string.format('%.0f', now / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'LIMIT', 0, ARGV[1])`,
  // A known state is outdated, unless its replica returned to it from a later one.
  usersAnnounce: `
local states = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES')
local last, own, before = 0, nil, nil
for at = 1, #states, 2 do
  local place = tonumber(states[at + 1])
  if place > last then last = place end
  if states[at] == ARGV[1] then own = place end
  if states[at] == ARGV[2] then before = place end
end
if own and own == last then return 1 end
if own and not (before and before > own) then return 0 end
if ARGV[2] ~= '' and not before then
  redis.call('ZADD', KEYS[1], last + 1, ARGV[2])
  last = last + 1
end
redis.call('ZADD', KEYS[1], last + 1, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', last - 99)
return 1`,
  // Never below the present epoch, nor below the requested one.
  sessionEpoch: `
local known = redis.call('GET', KEYS[1])
local epoch = math.max(tonumber(known or 0), tonumber(ARGV[1])) + tonumber(ARGV[2])
if tonumber(known or 0) ~= epoch then redis.call('SET', KEYS[1], epoch) end
return epoch`,
  // The second key remains where a holder did not free the lock: its result may still be unwritten.
  sessionFence: `${time}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return nil end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local number, owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (.*)$')
if owner and owner ~= ARGV[1] then
  return { string.format('%.0f', math.max(now, number + 1)), 1 }
end
number = number or string.format('%.0f', now)
redis.call('SET', KEYS[2], number .. ' ' .. ARGV[1], 'PX', ARGV[3])
return { number, 0 }`,
  sessionUnlock: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '1' then redis.call('DEL', KEYS[2]) end
return redis.call('DEL', KEYS[1])`
}

/** Scripts over two keys, which share a slot. */
const overTwoKeys: ReadonlySet<string> = new Set([
  'sessionCreate',
  'sessionRead',
  'sessionTouch',
  'sessionTouchAfterUse',
  'sessionEnd',
  'sessionFence',
  'sessionUnlock'
])

/** The commands of the store, for each connection that it writes over. */
export function defineCommands(redis: Redis | Cluster): void {
  for (const [name, lua] of Object.entries(scripts)) {
    redis.defineCommand(name, { numberOfKeys: overTwoKeys.has(name) ? 2 : 1, lua })
  }
}
