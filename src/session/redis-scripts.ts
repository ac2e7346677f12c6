/**
 * Each names its keys, all of one slot. KEYS[1] is the epoch, KEYS[2] the list of a user: a sorted
 * set of their sessions' keys by their idle end.
 */
import { tombstoneMs } from './store.ts'

// Redis' own clock, since those of replicas differ and jump; with parts of milliseconds, so that of
// sessions opened at once it is known which came first.
const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000`

// A record is its epoch and what is sealed; of an ended session it is the reason, after a mark. A key
// of another type, or without a time to live, is no session.
const look = `
local function look(name)
  local stored = redis.pcall('GET', name)
  if type(stored) ~= 'string' then return false end
  if string.sub(stored, 1, 1) == '!' then return stored end
  local epoch, sealed = string.match(stored, '^(%d+) (.*)$')
  if not epoch then return false end
  if tonumber(epoch) < tonumber(redis.call('GET', KEYS[1]) or '0') then return '!revoked' end
  return sealed
end
local function idleOf(key)
  local idle = redis.call('ZSCORE', KEYS[2], key)
  return idle and tonumber(idle) - now or 0
end
local function absoluteOf(name)
  return redis.call('PTTL', name) - ${tombstoneMs}
end
local function isAlive(key, name)
  local stored = look(name)
  if not stored or string.sub(stored, 1, 1) == '!' then return false end
  return idleOf(key) > 0 and absoluteOf(name) > 0 and stored
end`

/** The epoch of keys for scripts: an end of everyone's sessions leaves them. */
export const noEpoch = 2 ** 52

export const scripts = {
  /**
   * KEYS: record, users, blocks, records of the list. ARGV: key, sealed, idle and absolute time,
   * maximum, whether to refuse, user, key of the former session or nothing, the user's four blocks,
   * epoch of a repeated opening, keys of the list. Returns the epoch, then keys and what is sealed
   * of those that gave way. What the list has besides was opened a moment ago. A record that is
   * there stays, and one of a former epoch is not written: the journal may tell of a session that
   * has ended since. The record is written first, since a full Redis refuses it.
   */
  sessionOpen: `${now}${look}
local key, idle, absolute, former = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[8]
local current = tonumber(redis.call('GET', KEYS[1]) or '0')
local epoch = tonumber(ARGV[13]) or current
if redis.call('PTTL', KEYS[3]) ~= -2 or epoch < current then return { epoch } end
for at = 9, 12 do
  local till = redis.call('ZSCORE', KEYS[5], ARGV[at])
  if till and tonumber(till) > now then return 'blocked' end
end
local names, others, over, leaving = {}, {}, {}, {}
for at = 14, #ARGV do names[ARGV[at]] = KEYS[at - 8] end
for _, other in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if names[other] and not isAlive(other, names[other]) then
    over[#over + 1] = other
  elseif other == former then
    leaving[1] = other
  else
    others[#others + 1] = other
  end
end
local excess = #others + 1 - ARGV[5]
if excess > 0 and ARGV[6] == '1' then return 'full' end
local kept = absolute + ${tombstoneMs}
redis.call('SET', KEYS[3], string.format('%.0f ', epoch) .. ARGV[2], 'PX', kept)
if epoch > current and epoch < ${noEpoch} then redis.call('SET', KEYS[1], epoch) end
for at = 1, excess do leaving[#leaving + 1] = others[at] end
for _, other in ipairs(over) do redis.call('ZREM', KEYS[2], other) end
local gone = { epoch }
for _, other in ipairs(leaving) do
  local name, sealed = names[other], ''
  redis.call('ZREM', KEYS[2], other)
  if name then
    sealed = look(name)
    redis.call('SET', name, '!replaced', 'PX', ${tombstoneMs})
  end
  gone[#gone + 1], gone[#gone + 2] = other, sealed
end
redis.call('ZADD', KEYS[2], now + idle, key)
if redis.call('PTTL', KEYS[2]) < kept then redis.call('PEXPIRE', KEYS[2], kept) end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
redis.call('ZADD', KEYS[4], 'GT', now + math.min(idle, absolute), ARGV[7])
return gone`,
  /** KEYS: record. ARGV: its key. `DEL` fails at a former primary: it may have lost the record. */
  sessionRead: `${now}${look}
local stored = look(KEYS[3])
if not stored then
  if redis.call('PTTL', KEYS[3]) == -2 then redis.call('DEL', KEYS[3]) end
  return nil
end
return { stored, idleOf(ARGV[1]), absoluteOf(KEYS[3]) }`,
  /** KEYS: users, record. ARGV: its key, idle time, user. After a write a full Redis goes on. */
  sessionTouch: `${now}${look}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if not isAlive(ARGV[1], KEYS[4]) then return 0 end
redis.call('ZADD', KEYS[2], 'XX', now + ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], 'GT', now + math.min(ARGV[2], absoluteOf(KEYS[4])), ARGV[3])
return 1`,
  /** KEYS: the record alone. ARGV: what it is, what it becomes. */
  sessionReplace: `
local epoch, sealed = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
if sealed ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], epoch .. ' ' .. ARGV[2], 'KEEPTTL')
return 1`,
  /**
   * KEYS: users, records. ARGV: reason, user, whether to write the reason for each, keys. One that
   * is not there gets it too: after a failover its process may have yet to write it again.
   */
  sessionEnd: `${now}${look}
local ended = {}
for at = 4, #ARGV do
  local key, name = ARGV[at], KEYS[at]
  local stored = isAlive(key, name)
  redis.call('ZREM', KEYS[2], key)
  if stored or ARGV[3] == '1' or redis.call('PTTL', name) == -2 then
    redis.call('SET', name, '!' .. ARGV[1], 'PX', ${tombstoneMs})
  end
  if stored then
    ended[#ended + 1] = key
    ended[#ended + 1] = stored
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if last[1] then
  redis.call('ZADD', KEYS[3], 'XX', 'LT', last[2], ARGV[2])
else
  redis.call('ZREM', KEYS[3], ARGV[2])
end
return ended`,
  /** KEYS: epoch and users alone. ARGV: the epoch at least, how much more. */
  sessionEndAll: `
local current = tonumber(redis.call('GET', KEYS[1]) or '0')
local epoch = math.max(current, tonumber(ARGV[1])) + ARGV[2]
if epoch == current then return epoch end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], epoch)
return epoch`,
  /** KEYS: the users alone. ARGV: at most. */
  sessionUsers: `${now}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local users = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '-inf', 'LIMIT', 0, ARGV[1])
return { redis.call('ZCARD', KEYS[1]), users }`,
  /** KEYS: the set alone. ARGV: a member to add, and its time. Returns all, with what is left. */
  sessionSet: `${now}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ARGV[1] then
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
  local isLonger = tonumber(ARGV[2]) > redis.call('PTTL', KEYS[1])
  if isLonger then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for at = 2, #members, 2 do members[at] = string.format('%.0f', members[at] - now) end
return members`
}
