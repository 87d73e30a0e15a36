-- Groups: what each has, and the ring of those that can be served. Needs base, writes.
--
-- Of a group is read what a script needs, once; its numbers are kept up to date as jobs come and go, so
-- that it joins the ring, or leaves it, in the very moment at which a job makes it.
local DEFAULT_CEILING = tonumber(default_ceiling or nil)
local RING, ALARMS, GROUPS = JOBS .. 'ring', JOBS .. 'alarms', JOBS .. 'groups'
local groups, group_order = {}, {}
local is_claimable = false
local scheduled_change = 0

local function first_due_at(name)
  local first = call('ZRANGE', JOBS .. 'scheduled:' .. name, 0, 0, 'WITHSCORES')
  return tonumber(first[2])
end

local function group_of(name)
  local group = groups[name]
  if not group then
    group = {name = name, ceiling = DEFAULT_CEILING or math.huge, active = 0}
    if has_limits then
      local own = call('HGET', JOBS .. 'ceilings', name)
      group.has_ceiling = own ~= false
      group.ceiling = tonumber(own or nil) or group.ceiling
      group.paused = call('HEXISTS', JOBS .. 'pauses', name) == 1
    end
    if group.ceiling < math.huge then -- else nobody asks how many are held
      group.active = call('ZCARD', JOBS .. 'active:' .. name)
    end
    groups[name] = group
    group_order[#group_order + 1] = group
  end
  return group
end

-- How many wait; to be asked before the first of them comes or goes.
local function waiting_in(group)
  if not group.waiting then
    group.waiting = call('ZCARD', JOBS .. 'waiting:' .. group.name)
  end
  return group.waiting
end

local function is_due(group)
  if group.due == nil then
    local due = has_scheduled and first_due_at(group.name)
    group.due = due and due <= NOW or false
  end
  return group.due
end

local function is_servable(group)
  return not group.paused and group.active < group.ceiling and (waiting_in(group) > 0 or is_due(group))
end

local function turn_of(group)
  if group.turn == nil then
    group.turn = call('ZSCORE', RING, group.name)
  end
  return group.turn
end

local function leave_ring(group)
  if turn_of(group) then
    call('ZREM', RING, group.name)
    group.turn = false
  end
end

local function go_to_tail(group)
  group.turn = call('HINCRBY', QUEUE, 'turns', 1)
  call('ZADD', RING, group.turn, group.name)
end

-- Lets a group join the ring's tail, or leave it.
local function refresh(group)
  if not is_servable(group) then
    leave_ring(group)
  elseif not turn_of(group) then
    go_to_tail(group)
    is_claimable = true
  end
end

-- Whether a name comes before another, byte by byte: Lua's own comparison follows the server's locale.
local function is_before(one, other)
  for place = 1, math.min(#one, #other) do
    local a, b = one:byte(place), other:byte(place)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

-- Writes down whether any group has a ceiling of its own, or is paused.
local function note_limits()
  if call('EXISTS', JOBS .. 'ceilings', JOBS .. 'pauses') > 0 then
    call('HSET', QUEUE, 'limits', 1)
  else
    call('HDEL', QUEUE, 'limits')
  end
end

-- Lets the groups whose jobs fell due join, by due time; answers false where there are too many for one step.
local function wake_due_groups()
  if not has_scheduled then
    return true
  end
  for _ = 1, 100 do
    local first = call('ZRANGE', ALARMS, 0, 0, 'WITHSCORES')
    if not first[1] or tonumber(first[2]) > NOW then
      return true
    end
    local name = first[1]
    local due = first_due_at(name)
    if due and due > tonumber(first[2]) then
      call('ZADD', ALARMS, due, name) -- what was due at that time is gone
    else
      local group = group_of(name)
      group.due = due ~= nil and due <= NOW
      refresh(group)
      local set = JOBS .. 'scheduled:' .. name
      local following = call('ZRANGEBYSCORE', set, '(' .. int(NOW), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if following[2] then
        call('ZADD', ALARMS, following[2], name)
      else
        call('ZREM', ALARMS, name)
      end
    end
  end
  return false
end

-- Goes on with what a change of the default ceiling began: each group joins or leaves, by name.
local function refresh_more()
  if not refreshing then
    return true
  end
  local from = refreshing == '' and '-' or '(' .. refreshing:sub(2)
  local names = call('ZRANGEBYLEX', GROUPS, from, '+', 'LIMIT', 0, 100)
  for n = 1, #names do
    refresh(group_of(names[n]))
  end
  if #names < 100 then
    call('HDEL', QUEUE, 'refreshing')
    refreshing = false
    return true
  end
  refreshing = '=' .. names[#names]
  call('HSET', QUEUE, 'refreshing', refreshing)
  return false
end

-- Brings the ring up to date before a claim looks; answers whether it is, or another call must go on.
local function is_ring_ready()
  local is_refreshed = refresh_more()
  return wake_due_groups() and is_refreshed
end

-- Says that somebody found too little to do, and is told when there may be more.
local function note_idle()
  if not is_idle then
    call('HSET', QUEUE, 'idle', 1)
  end
end

-- Ends every changing script: sends the writes, forgets groups that have nothing, wakes who is idle.
local function finish()
  send_all()
  for n = 1, #group_order do
    local group = group_order[n]
    local name = group.name
    if group.is_entered then
      call('ZADD', GROUPS, 0, name)
    end
    if group.alarm then
      call('ZADD', ALARMS, 'LT', int(group.alarm), name)
    end
    local may_be_empty = (group.waiting or 0) == 0 and not group.is_held and not group.paused and not group.has_ceiling
    if may_be_empty then
      forget_if_empty(name)
    end
  end
  if scheduled_change ~= 0 then
    call('HINCRBY', QUEUE, 'scheduled', int(scheduled_change))
  end
  if is_claimable and is_idle and not is_paused then
    call('HDEL', QUEUE, 'idle')
    local channel = JOBS .. 'wake'
    local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
    -- A user without the right to the channel does without: who waits looks again by itself.
    redis.pcall('PUBLISH', channel, type(count[2]) == 'number' and count[2] or 1)
  end
end
