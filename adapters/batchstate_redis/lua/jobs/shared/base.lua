-- What every script on jobs begins with: where things are, what time it is, and how a job's head reads.
--
-- Every script is told KEYS 1: the queue's settings, 2: a key that never exists; and ARGV 1: the time
-- in milliseconds, or "" for the server's own. The second key makes a cluster that is moving the slot
-- answer TRYAGAIN until all of it has arrived, since a script finds only here which other keys of the
-- slot it needs, and one that has not arrived yet would look like none.
local call = redis.call
local QUEUE = KEYS[1]
local JOBS = QUEUE:sub(1, -6)
local ROOT = QUEUE:sub(1, -8)

local function read_clock()
  if ARGV[1] ~= '' then
    return tonumber(ARGV[1])
  end
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local NOW = read_clock()

local settings = call('HMGET', QUEUE, 'format', 'paused', 'ceiling', 'idle', 'refreshing', 'limits', 'scheduled')

-- A newer program that stores jobs in another way says so here, before the first of them.
if settings[1] then
  return redis.error_reply(
    'FORMAT the jobs of this queue are stored in format ' .. settings[1] .. ', and this program reads up to 1')
end

-- Numbers as they are stored: Lua's own way has 14 digits only.
local function int(number)
  return string.format('%.0f', number)
end

-- A name as a JSON text; names have no control characters.
local function quoted(name)
  return '"' .. name:gsub('["\\]', '\\%0') .. '"'
end

-- A head: format, place (its first letter), claim, group, deliveries, attempts, stalls, when (it is
-- due, or extended to, or died), order, when it was added, most attempts, error; tabs between.
local HEAD = '^1\t(%l)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t(%-?%d*)\t(%d+)\t(%-?%d+)\t(%d+)\t(.*)$'

-- Reads a head; answers nil where there is none, or one that nobody of ours wrote.
local function parsed(text)
  local place, claim, group, deliveries, attempts, stalls, when, order, added, most, err
  if text then
    place, claim, group, deliveries, attempts, stalls, when, order, added, most, err = text:match(HEAD)
  end
  return place and {
    place = place, claim = claim, deliveries = deliveries, attempts = attempts, stalls = stalls, when = when,
    order = order, added = added, most = most, group = group, error = err,
  }
end

-- The field in which the job's payload is, beside its head; no name has a tab.
local function payload_of(id)
  return '\t' .. id
end

local function written(head)
  return table.concat({
    '1', head.place, head.claim, head.group, head.deliveries, head.attempts, head.stalls, head.when, head.order,
    head.added, head.most, head.error,
  }, '\t')
end

-- Writes are gathered by command and key, and sent together at the end, up to a thousand items at once.
local gathered = {}

local function list_of(command, key)
  local list = {command, key, n = 2}
  gathered[#gathered + 1] = list
  return list
end

-- The gathered writes of a command to a key of the queue's own.
local lists = {}
local function writes(command, part)
  local of_part = lists[part]
  if not of_part then
    of_part = {}
    lists[part] = of_part
  end
  local list = of_part[command]
  if not list then
    list = list_of(command, JOBS .. part)
    of_part[command] = list
  end
  return list
end

local function later(list, one, two)
  local n = list.n
  list[n + 1] = one
  if two then
    n = n + 1
    list[n + 1] = two
  end
  list.n = n + 1
end

local function send(list)
  local first = 3
  while first <= list.n do
    local last = math.min(first + 1999, list.n)
    call(list[1], list[2], unpack(list, first, last))
    first = last + 1
  end
  list.n = 2
end

-- What goes is sent before what comes, so that a job may leave a place and come back to it.
local function send_all()
  for n = 1, #gathered do
    if gathered[n][1] == 'ZREM' or gathered[n][1] == 'HDEL' then
      send(gathered[n])
    end
  end
  for n = 1, #gathered do
    send(gathered[n])
  end
end

-- Reads fields of a hash, however many.
local function fields(key, names)
  if #names == 0 then
    return {}
  end
  return call('HMGET', key, unpack(names))
end
