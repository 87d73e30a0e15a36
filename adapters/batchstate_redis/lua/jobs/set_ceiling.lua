-- Sets how many jobs of a group may be held at once, or the default of all groups.
--
-- uses    base, writes, groups
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: "=" and the group, or "" for the default; 3: how many, or "" for no such limit.
-- answer  1. Where a new default concerns more groups than one step looks at, claims go on with it.
local ceiling = ARGV[3]
if ARGV[2] == '' then
  DEFAULT_CEILING = tonumber(ceiling)
  if DEFAULT_CEILING then
    call('HSET', QUEUE, 'ceiling', ceiling)
  else
    call('HDEL', QUEUE, 'ceiling')
  end
  refreshing = ''
  call('HSET', QUEUE, 'refreshing', '')
  refresh_more()
else
  local group = group_of(ARGV[2]:sub(2))
  group.ceiling = tonumber(ceiling) or DEFAULT_CEILING or math.huge
  group.active = call('ZCARD', JOBS .. 'active:' .. group.name)
  group.has_ceiling = ceiling ~= ''
  if group.has_ceiling then
    call('HSET', JOBS .. 'ceilings', group.name, ceiling)
    call('ZADD', GROUPS, 0, group.name)
  else
    call('HDEL', JOBS .. 'ceilings', group.name)
  end
  is_claimable = waiting_in(group) > 0
  note_limits()
  refresh(group)
end
finish()
return 1
