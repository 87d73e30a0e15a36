-- Takes jobs of one group, or one a group and round after round, and makes a batch and a claim of them.
--
-- uses    base
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or "";
--         2: the claim; 3: how many at most; 4: for how long, in milliseconds;
--         5: "=" and the group, or "" for whose turn it is, or "*" for one job a group;
--         6: the batch's state; 7: its mark; 8: its attributes; 9, 10: its history, before
--            and behind the time;
--         11: how it ends, as the claim's make-up begins.
-- answer  0: nothing can be served; 1: the groups that fell due are too many for one step, so call again;
--         2: there is such a batch, and it holds nothing; or what was made: the time, when the lease
--         ends, the jobs, head and payload of each; or what an earlier sending of this made: the
--         batch's row, when the lease ends, the same of the jobs.
local claim, limit, wanted = ARGV[2], tonumber(ARGV[3]), ARGV[5]
if call('EXISTS', ROOT .. 'b:' .. claim) == 1 then
  -- uses    heads, claims
  return claimed(claim) or 2
end

-- Lets a job whose head nobody can read be dead, where it is seen, so that it is not in the others' way.
local function put_aside(group, id, head, order)
  local reason = 'what was stored of it could not be read: ' .. head:sub(1, 900)
  local numbers = '\t0\t0\t0\t' .. int(NOW) .. '\t' .. order .. '\t' .. int(NOW) .. '\t1\t'
  call('HSET', HEADS, id, '1\td\t\t' .. group .. numbers .. reason)
  call('ZADD', JOBS .. 'dead:' .. group, order, id)
  call('ZADD', JOBS .. 'dead', order, id)
  call('ZADD', JOBS .. 'died', NOW, id)
end

-- What changes of a head when the job is taken out of its line; the rest stays as it is.
local WAITING = '^1\tw\t[^\t]*\t[^\t]*\t(%d+)\t(%d+\t%d+)\t%-?%d*\t(%d+\t%-?%d+\t%d+\t.*)$'

-- Takes up to `most` of a group's oldest out of its line; answers their IDs, the head as it is now and the payload of
-- each, flat, and how many have left the line.
local function take(group, most)
  local popped = call('ZPOPMIN', JOBS .. 'waiting:' .. group, most)
  local names, total = {}, #popped / 2
  for n = 1, 2 * total, 2 do
    names[n], names[n + 1] = popped[n], '\t' .. popped[n]
  end
  local rows = total > 0 and call('HMGET', HEADS, unpack(names)) or {}
  local ids, active, texts, count = {}, {}, {}, 0
  local begin = '1\ta\t' .. claim .. '\t' .. group .. '\t'
  for n = 1, 2 * total, 2 do
    local id, head = popped[n], rows[n] or ''
    local deliveries, failures, rest = head:match(WAITING)
    if deliveries then
      deliveries = deliveries == '0' and '1' or deliveries + 1 -- to write a number takes as long as all of the rest
      local text, two = begin .. deliveries .. '\t' .. failures .. '\t\t' .. rest, 2 * count
      active[two + 1], active[two + 2] = popped[n + 1], id
      texts[two + 1], texts[two + 2] = id, text
      rows[two + 1], rows[two + 2] = text, rows[n + 1] or ''
      count = count + 1
      ids[count] = id
    elseif head ~= '' then
      put_aside(group, id, head, int(tonumber(popped[n + 1])))
    end
  end
  if count > 0 then
    call('ZADD', JOBS .. 'active:' .. group, unpack(active))
    call('HSET', HEADS, unpack(texts))
  end
  for n = 2 * total, 2 * count + 1, -1 do
    rows[n] = nil
  end
  return ids, rows, total
end

-- Mostly nothing is paused, limited or due: then one line is all there is to look at.
local ids, rows, ring = {}, {}, JOBS .. 'ring'
if not (is_paused or default_ceiling or refreshing or has_limits or wanted == '*')
  and (not has_scheduled or call('ZCOUNT', JOBS .. 'alarms', '-inf', int(NOW)) == 0) then
  local turns = wanted == '' and call('ZRANGE', ring, 0, 1) or {wanted:sub(2)}
  local group = turns[1]
  if group and (not has_scheduled or call('ZCOUNT', JOBS .. 'scheduled:' .. group, '-inf', int(NOW)) == 0) then
    ids, rows = take(group, limit)
    if #ids > 0 and call('ZCARD', JOBS .. 'waiting:' .. group) == 0 then
      call('ZREM', ring, group)
    elseif #ids > 0 and turns[2] then -- else it is alone, and stays where it is
      call('ZADD', ring, call('HINCRBY', QUEUE, 'turns', 1), group)
    end
  end
end

if #ids == 0 then
  -- uses    writes, groups
  if is_paused then
    note_idle()
    return 0
  end

  -- What changes of a head when the job stands in line.
  local SCHEDULED = '^1\ts\t([^\t]*\t[^\t]*\t%d+\t%d+\t%d+)\t%-?%d+\t(%d+\t%-?%d+\t%d+\t.*)$'

  -- Lets due jobs stand in line, in their old places: so many that it takes some 1 ms.
  local function promote(group)
    local key = JOBS .. 'scheduled:' .. group.name
    local due = call('ZRANGEBYSCORE', key, '-inf', int(NOW), 'LIMIT', 0, 250)
    local ids = {}
    for n = 1, #due do
      ids[n] = due[n]:sub(17)
    end
    local heads = fields(HEADS, ids)
    local line, texts, count = {}, {}, 0
    for n = 1, #ids do
      local before, rest = (heads[n] or ''):match(SCHEDULED)
      if before then
        line[count + 1], line[count + 2] = tonumber(due[n]:sub(1, 16)), ids[n]
        texts[count + 1], texts[count + 2] = ids[n], '1\tw\t' .. before .. '\t\t' .. rest
        count = count + 2
      elseif heads[n] then
        put_aside(group.name, ids[n], heads[n], int(tonumber(due[n]:sub(1, 16))))
      end
    end
    call('ZREM', key, unpack(due))
    scheduled_change = scheduled_change - #due
    if count > 0 then
      group.waiting = waiting_in(group) + count / 2
      call('ZADD', JOBS .. 'waiting:' .. group.name, unpack(line))
      call('HSET', HEADS, unpack(texts))
    end
    group.due = nil
  end

  local function take_from(group, most)
    local taken, heads_and_payloads, gone = take(group.name, most)
    group.waiting, group.active = waiting_in(group) - gone, group.active + #taken
    group.is_held = group.is_held or #taken > 0
    return taken, heads_and_payloads
  end

  local function take_all_from(group, most)
    if is_servable(group) and is_due(group) then
      promote(group)
    end
    most = math.min(most, group.ceiling - group.active, waiting_in(group))
    if most <= 0 or not is_servable(group) then
      return {}, {}
    end
    return take_from(group, most)
  end

  local is_ready = wanted:sub(1, 1) == '=' or is_ring_ready()
  local is_sure = wanted ~= ''
  if wanted == '*' then
    -- One job a group in turn; who was served last is last in the ring.
    local names = call('ZRANGE', RING, 0, limit - 1)
    local turns, served = {}, {}
    for n = 1, #names do
      local group = group_of(names[n])
      if is_servable(group) and is_due(group) then
        promote(group)
      end
      group.share = 0
      if is_servable(group) then
        group.room = math.min(waiting_in(group), group.ceiling - group.active)
        turns[#turns + 1] = group
      else
        leave_ring(group)
      end
    end
    local first, count = 1, 0
    while first <= #turns and count < limit do
      local group = turns[first]
      first, count = first + 1, count + 1
      group.share = group.share + 1
      served[count] = group
      if group.share < group.room then
        turns[#turns + 1] = group
      end
    end
    for n = 1, count do
      local group = served[n]
      if not group.taken then
        group.taken, group.rows = take_from(group, group.share)
        group.next = 0
      end
      group.next = group.next + 1
      ids[#ids + 1] = group.taken[group.next]
      rows[#rows + 1], rows[#rows + 2] = group.rows[2 * group.next - 1], group.rows[2 * group.next]
      if group.next == group.share then
        if is_servable(group) then
          go_to_tail(group)
        else
          leave_ring(group)
        end
      end
    end
  elseif wanted ~= '' then
    local group = group_of(wanted:sub(2))
    ids, rows = take_all_from(group, limit)
    refresh(group)
  else
    -- From the group whose turn it is; it goes to the tail.
    for _ = 1, 100 do
      local first = call('ZRANGE', RING, 0, 1, 'WITHSCORES')
      if not first[1] then
        is_sure = true
        break
      end
      local group = group_of(first[1])
      group.turn = first[2]
      ids, rows = take_all_from(group, limit)
      if not is_servable(group) then
        leave_ring(group)
      elseif first[3] then -- else it is alone, and stays where it is
        go_to_tail(group)
      end
      if #ids > 0 then
        break
      end
    end
  end
  is_claimable = false
  finish()
  if #ids == 0 then
    if not (is_ready and is_sure) then
      return 1
    end
    note_idle()
    return 0
  end
end

local associations = ROOT .. 'a:'
for n = 1, #ids do
  call('HSET', associations .. ids[n], claim, '')
end
-- Names have no control characters.
local listed = table.concat(ids, '\n')
local requests = '["' .. listed:gsub('["\\]', '\\%0'):gsub('\n', '","') .. '"]'
local now, expires = int(NOW), int(NOW + tonumber(ARGV[4]))
call('SET', ROOT .. 'b:' .. claim, '1\t1\t\t' .. ARGV[7] .. '\t1\t' .. now .. '\t' .. ARGV[6] .. '\t\n'
  .. now .. '\t' .. requests .. '\n' .. ARGV[8] .. '\n' .. ARGV[9] .. now .. ARGV[10])
call('INCR', ROOT .. 'n')
call('ZADD', ROOT .. 's:' .. ARGV[6], 1, claim)
-- As `claims` reads it: state and make-up.
local state, makeup = expires .. ' ' .. #ids .. ' 0 0', ARGV[11] .. '\n' .. listed
call('HSET', JOBS .. 'claims', claim, state, '\t' .. claim, makeup)
call('ZADD', JOBS .. 'leases', expires, claim)
return {now, expires, ids, rows}
