-- Lists the jobs in a place, of one group or of all by name, from a position that is a value and no number.
--
-- uses    base
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: how many at most; 3: what the place's sets are called; 4: "=" and the group, or ""
--         for all, or "*" for the one set of all groups; 5: the group that the last page ended in; 6, 7: score and
--         member of its last job, or "", "".
-- answer  the jobs, each with its group, score and member; 1 if more may follow.
local limit, kind, wanted = tonumber(ARGV[2]), JOBS .. ARGV[3], ARGV[4]
local answers = {}

-- The first position after an entry, whether it is still there or not.
local function position_after(set, score, member)
  local rank = call('ZSCORE', set, member) == score and call('ZRANK', set, member)
  if rank then
    return rank + 1
  end
  local first, beyond = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while first < beyond do
    -- Entries of one score are told apart by their first sixteen bytes, which are digits.
    local middle = math.floor((first + beyond) / 2)
    if call('ZRANGE', set, middle, middle)[1]:sub(1, 16) > member:sub(1, 16) then
      beyond = middle
    else
      first = middle + 1
    end
  end
  return first
end

local function list(name, set, score, member)
  local first = score == '' and 0 or position_after(set, score, member)
  local found = call('ZRANGE', set, first, first + limit - 1, 'WITHSCORES')
  for n = 1, #found, 2 do
    answers[#answers + 1] = name
    answers[#answers + 1] = found[n + 1]
    answers[#answers + 1] = found[n]
  end
  limit = limit - #found / 2
end

if wanted == '*' then
  list('', kind, ARGV[6], ARGV[7])
elseif wanted ~= '' then
  list(wanted:sub(2), kind .. ':' .. wanted:sub(2), ARGV[6], ARGV[7])
else
  local from, score, member = ARGV[5], ARGV[6], ARGV[7]
  local names = call('ZRANGEBYLEX', JOBS .. 'groups', '[' .. from, '+', 'LIMIT', 0, 500)
  for n = 1, #names do
    local name = names[n]
    list(name, kind .. ':' .. name, name == from and score or '', name == from and member or '')
    if limit <= 0 then
      break
    end
  end
  if limit > 0 and #names == 500 then
    return {answers, 1, names[500]}
  end
end
return {answers, limit <= 0 and 1 or 0, ''}
