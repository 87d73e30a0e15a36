-- Places: how a job leaves the one it is in and enters another. Needs base, groups.
local HEADS, PAYLOADS, DONE = JOBS .. 'heads', JOBS .. 'payloads', JOBS .. 'done'

-- How a scheduled job is filed: those due at one time by order.
local function filed(id, head)
  return string.format('%016.0f', tonumber(head.order)) .. id
end

local function leave(id, head)
  local group = group_of(head.group)
  if head.place == 'a' then
    group.active = group.active - 1
    is_claimable = is_claimable or (group.waiting > 0 and group.ceiling < math.huge)
    later('ZREM', JOBS .. 'active:' .. head.group, id)
  elseif head.place == 'w' then
    group.waiting = group.waiting - 1
    later('ZREM', JOBS .. 'waiting:' .. head.group, id)
  elseif head.place == 's' then
    call('ZREM', JOBS .. 'scheduled:' .. head.group, filed(id, head))
    group.due = is_due(head.group)
  else
    later('ZREM', JOBS .. 'dead:' .. head.group, id)
    later('ZREM', JOBS .. 'dead', id)
    later('ZREM', JOBS .. 'died', id)
  end
  return group
end

-- Files a job in the place that its head says, and writes the head.
local function enter(id, head)
  local group = group_of(head.group)
  if head.place == 'w' then
    group.waiting = group.waiting + 1
    is_claimable = true
    later('ZADD', JOBS .. 'waiting:' .. head.group, head.order, id)
  elseif head.place == 's' then
    call('ZADD', JOBS .. 'scheduled:' .. head.group, head.when, filed(id, head))
    call('ZADD', ALARMS, 'LT', head.when, head.group)
    group.due = group.due or tonumber(head.when) <= NOW
  else
    later('ZADD', JOBS .. 'dead:' .. head.group, head.order, id)
    later('ZADD', JOBS .. 'dead', head.order, id)
    later('ZADD', JOBS .. 'died', head.when, id)
  end
  call('ZADD', GROUPS, 0, head.group)
  later('HSET', HEADS, id, written(head))
  return group
end

local function drop(id)
  later('HDEL', HEADS, id)
  later('HDEL', PAYLOADS, id)
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
