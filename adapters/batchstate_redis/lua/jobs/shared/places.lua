-- Places: how a job leaves the one it is in and enters another. Needs base, heads, writes, groups.
--
-- How a scheduled job is filed: those due at one time by order.
local function filed(id, head)
  return string.format('%016.0f', tonumber(head.order)) .. id
end

-- The gathered writes of a command to one of a group's sets.
local function writes_of(group, command, place)
  local name = command .. place
  local list = group[name]
  if not list then
    list = list_of(command, JOBS .. place .. group.name)
    group[name] = list
  end
  return list
end

local function leave(id, head)
  local group = group_of(head.group)
  if head.place == 'a' then
    if group.ceiling < math.huge then
      group.active, group.is_changed = group.active - 1, true
      is_claimable = is_claimable or waiting_in(group) > 0
    end
    later(writes_of(group, 'ZREM', 'active:'), id)
  elseif head.place == 'w' then
    group.waiting, group.is_changed = waiting_in(group) - 1, true
    later(writes_of(group, 'ZREM', 'waiting:'), id)
  elseif head.place == 's' then
    call('ZREM', JOBS .. 'scheduled:' .. head.group, filed(id, head))
    scheduled_change = scheduled_change - 1
    group.due, group.is_changed = nil, true
  else
    later(writes_of(group, 'ZREM', 'dead:'), id)
    later(writes('ZREM', 'dead'), id)
    later(writes('ZREM', 'died'), id)
  end
  return group
end

-- Files a job in the place that its head says, and writes the head.
local function enter(id, head)
  local group = group_of(head.group)
  if head.place == 'w' then
    group.waiting, group.is_changed = waiting_in(group) + 1, true
    is_claimable = true
    later(writes_of(group, 'ZADD', 'waiting:'), head.order, id)
  elseif head.place == 's' then
    local due = tonumber(head.when)
    later(writes_of(group, 'ZADD', 'scheduled:'), head.when, filed(id, head))
    group.alarm = math.min(group.alarm or due, due)
    scheduled_change = scheduled_change + 1
    if due <= NOW then
      group.due, group.is_changed = true, true
    end
  else
    later(writes_of(group, 'ZADD', 'dead:'), head.order, id)
    later(writes('ZADD', 'dead'), head.order, id)
    later(writes('ZADD', 'died'), head.when, id)
  end
  group.is_entered = true
  later(writes('HSET', 'jobs'), id, written(head))
  return group
end

local function drop(id)
  later(writes('HDEL', 'jobs'), id, payload_of(id))
end

local function die(head, reason)
  head.place, head.when, head.error = 'd', int(NOW), reason
end

-- Into its line, or due later.
local function wait(head, delay)
  if delay > 0 then
    head.place, head.when = 's', int(NOW + delay)
  else
    head.place, head.when = 'w', ''
  end
end

-- Writes into an association what became of the job, unless it was purged with its batch.
local function remember(claim, id, outcome, live)
  local key = ROOT .. 'a:' .. id
  if live or call('HEXISTS', key, claim) == 1 then
    call('HSET', key, claim, outcome)
  end
end
