-- Writes: gathered by command and key while a script decides, and sent together at its end, up to a thousand items at
-- once. Needs base.
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
