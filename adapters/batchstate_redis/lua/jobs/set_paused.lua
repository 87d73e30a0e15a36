-- Pauses the queue or a group, or lets it go on.
--
-- uses    base, writes, groups
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: "=" and the group, or "" for the queue; 3: "=" and the reason, or "" to go on.
-- answer  1.
local reason = ARGV[3]
if ARGV[2] == '' then
  is_paused = reason ~= ''
  if is_paused then
    call('HSET', QUEUE, 'paused', reason:sub(2))
  else
    call('HDEL', QUEUE, 'paused')
    is_claimable = true
  end
else
  local group = group_of(ARGV[2]:sub(2))
  group.paused = reason ~= ''
  if group.paused then
    call('HSET', JOBS .. 'pauses', group.name, reason:sub(2))
    call('ZADD', GROUPS, 0, group.name)
  else
    call('HDEL', JOBS .. 'pauses', group.name)
  end
  note_limits()
  refresh(group)
end
finish()
return 1
