-- Takes back held jobs whose lease has ended, a stall each.
--
-- uses    base, heads, writes, groups, places, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or "";
--         2: how many jobs at most; 3: with how many stalls more than this a job is dead; 4: by how
--         many milliseconds to wait longer; 5: who and why, as two JSON texts, a comma between; 6: the
--         mark of batches that end; 7: the error of jobs that are swept; 8: what this call is known by.
-- answer  one text of five parts, a byte 1 between: what the call is known by; the jobs taken back, the
--         dead ones, the claims that ended, a line break between each; then "more" where the limit
--         left some, "again" where the call did as much as it may, "" where nothing is left. The last
--         one is kept, and is the answer to the same call sent again.
local SWEPT = JOBS .. 'swept'
local known = call('GET', SWEPT)
if known and known:sub(1, #ARGV[8]) == ARGV[8] then
  return known
end
local limit, most, horizon, reason = tonumber(ARGV[2]), tonumber(ARGV[3]), NOW - tonumber(ARGV[4]), ARGV[7]
local returned, dead, ended, room, rest, looked = {}, {}, {}, limit, '', 0
local concerned = {}

local function sweep(claim, id, head, live)
  local group = leave(id, head)
  head.stalls = int(tonumber(head.stalls) + 1)
  head.place, head.when, head.error = 'w', '', reason
  if tonumber(head.stalls) > most then
    die(head, reason)
    dead[#dead + 1] = id
  else
    returned[#returned + 1] = id
  end
  enter(id, head)
  concerned[group.name] = true
  remember(claim, id, 'swept', live)
end

-- Sweeps one claim; files it under when the next of its jobs lapses, ends it, or leaves it for lack of room.
local function sweep_claim(claim, state)
  local live, held, following, is_full = is_live(claim), 0, math.huge, false
  local lapsed = {}
  each_held(claim, function(id, head)
    looked, held = looked + 1, held + 1
    local deadline = deadline_of(state, head)
    if deadline > horizon then
      following = math.min(following, deadline)
    elseif #lapsed < room then
      lapsed[#lapsed + 1] = {id, head}
    else
      is_full = true
      return false
    end
  end)
  for n = 1, #lapsed do
    sweep(claim, lapsed[n][1], lapsed[n][2], live)
  end
  room = room - #lapsed
  -- What the heads say is the truth: a job that nobody can read any more must not keep the claim.
  state.held = (is_full and state.held or held) - #lapsed
  if #lapsed > 0 then
    state.lost = '1'
  end
  if end_if_empty(claim, state, true, ARGV[5], ARGV[6]) then
    ended[#ended + 1] = claim
  elseif is_full then
    rest = 'more'
  else
    -- What nobody can read does not lapse; whoever mends it finds it looked at again in a minute.
    call('ZADD', LEASES, int(math.min(following, math.max(state.expires, NOW) + 60000)), claim)
  end
end

while rest == '' do
  local first = call('ZRANGEBYSCORE', LEASES, '-inf', int(horizon), 'LIMIT', 0, 1)[1]
  if not first then
    break
  end
  if looked >= 500 then
    rest = 'again'
    break
  end
  looked = looked + 5
  local state = state_of(first, true)
  if not state then
    call('ZREM', LEASES, first)
  elseif state.expires > horizon then
    call('ZADD', LEASES, int(state.expires), first)
  else
    sweep_claim(first, state)
  end
end
-- Groups that a sweep brings jobs back to join by name.
local names = {}
for name in pairs(concerned) do
  names[#names + 1] = name
end
table.sort(names, is_before)
for n = 1, #names do
  refresh(group_of(names[n]))
end
finish()
local answer = table.concat({
  ARGV[8], table.concat(returned, '\n'), table.concat(dead, '\n'), table.concat(ended, '\n'), rest,
}, '\1')
if #returned + #dead + #ended > 0 then
  call('SET', SWEPT, answer)
end
return answer
