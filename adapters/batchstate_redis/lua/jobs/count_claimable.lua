-- Counts how many jobs one claim could take now.
--
-- uses    base, writes, groups
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: how far to count; 3: "=" and the group, or "" for whose turn it is, or "*" for one
--         job a group.
-- answer  how many; or -1 where there are too many groups to look at for one step, so call again.
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

-- The groups in turn: those in the ring, then those that fell due since, by due time. Counting moves none.
local function groups_in_turn()
  local names = call('ZRANGE', RING, 0, 99)
  local due = has_scheduled and call('ZRANGEBYSCORE', ALARMS, '-inf', int(NOW), 'LIMIT', 0, 100) or {}
  local found = {}
  for n = 1, #names do
    found[n] = group_of(names[n])
    found[n].is_seen = true
  end
  for n = 1, #due do
    local group = group_of(due[n])
    if not group.is_seen and is_due(group) then
      found[#found + 1] = group
    end
  end
  return found, #due == 100
end

local count, is_more = 0, false
if wanted ~= '' and wanted ~= '*' then
  count = count_of(group_of(wanted:sub(2)))
else
  local in_turn
  in_turn, is_more = groups_in_turn()
  for n = 1, #in_turn do
    count = count + count_of(in_turn[n])
    if count >= limit or (count > 0 and wanted == '') then
      break
    end
  end
end
if count == 0 and (is_more or refreshing) then
  -- Too many that cannot be served stand before those that can: let them be looked at once and for all.
  is_ring_ready()
  is_claimable = false
  finish()
  return -1
end
if count < limit then
  note_idle()
end
return math.min(count, limit)
