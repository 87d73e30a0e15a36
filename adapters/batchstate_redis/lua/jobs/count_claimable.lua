-- Counts how many jobs one claim could take now.
--
-- uses    base, groups
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: how far to count; 3: "=" and the group, or "" for whose turn it is, or "*" for one
--         job a group.
-- answer  how many; or -1 where the groups that fell due are too many for one step, so call again.
local limit, wanted = tonumber(ARGV[2]), ARGV[3]
if is_paused then
  note_idle()
  return 0
end

local function count_of(group)
  if not is_servable(group) then
    return 0
  end
  local due = is_due(group) and call('ZCOUNT', JOBS .. 'scheduled:' .. group.name, '-inf', int(NOW)) or 0
  return math.min(waiting_in(group) + due, group.ceiling - group.active)
end

local is_ready = is_ring_ready()
local count = 0
if wanted ~= '' and wanted ~= '*' then
  count = count_of(group_of(wanted:sub(2)))
else
  local names = call('ZRANGE', RING, 0, 99)
  for n = 1, #names do
    count = count + count_of(group_of(names[n]))
    if count >= limit or (count > 0 and wanted == '') then
      break
    end
  end
end
is_claimable = false
finish()
if count == 0 and not is_ready then
  return -1
end
if count < limit then
  note_idle()
end
return math.min(count, limit)
