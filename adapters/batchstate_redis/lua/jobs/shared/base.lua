-- What every script on jobs begins with: where things are, what time it is, what is set for the queue.
--
-- Every script is told KEYS 1: the queue's settings, 2: a key that never exists; and ARGV 1: the time
-- in milliseconds, or "" for the server's own. The second key makes a cluster that is moving the slot
-- answer TRYAGAIN until all of it has arrived, since a script finds only here which other keys of the
-- slot it needs, and one that has not arrived yet would look like none.
local call = redis.call
local QUEUE = KEYS[1]
local JOBS = QUEUE:sub(1, -6)
local ROOT = QUEUE:sub(1, -8)

local NOW = tonumber(ARGV[1])
if not NOW then
  local time = call('TIME')
  NOW = time[1] * 1000 + math.floor(time[2] / 1000)
end

local format, is_paused, default_ceiling, is_idle, refreshing, has_limits, scheduled_count = unpack(
  call('HMGET', QUEUE, 'format', 'paused', 'ceiling', 'idle', 'refreshing', 'limits', 'scheduled'))
local has_scheduled = (tonumber(scheduled_count or nil) or 0) > 0

-- A newer program that stores jobs in another way says so here, before the first of them.
if format then
  return redis.error_reply(
    'FORMAT the jobs of this queue are stored in format ' .. format .. ', and this program reads up to 1')
end

local HEADS, DONE = JOBS .. 'jobs', JOBS .. 'done'

-- Numbers as they are stored: Lua's own way has 14 digits only.
local function int(number)
  return string.format('%.0f', number)
end

-- Reads fields of a hash, however many.
local function fields(key, names)
  if #names == 0 then
    return {}
  end
  return call('HMGET', key, unpack(names))
end

-- Forgets a group that has no jobs any more; what is paused or has a ceiling of its own is not to be forgotten.
local function forget_if_empty(name)
  if call('EXISTS', JOBS .. 'waiting:' .. name) == 0 and call('EXISTS', JOBS .. 'active:' .. name,
    JOBS .. 'scheduled:' .. name, JOBS .. 'dead:' .. name) == 0 then
    call('ZREM', JOBS .. 'groups', name)
  end
end
