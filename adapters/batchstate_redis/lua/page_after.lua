-- Reads a page of a sorted set, from a position that is a value and no number of entries, so that
-- what comes and goes meanwhile shifts nothing and any server can go on where another stopped.
--
-- KEYS    1: the sorted set.
-- ARGV    1: how many; 2, 3: the score and the member to go on after, or "", "" to begin.
-- answer  members and scores, flat, in the order of score, then bytes of the member.

local function is_after(left, right)
  -- Byte by byte: Lua's own comparison follows the server's locale.
  for place = 1, math.min(#left, #right) do
    local a, b = left:byte(place), right:byte(place)
    if a ~= b then
      return a > b
    end
  end
  return #left > #right
end

local set, score, member = KEYS[1], ARGV[2], ARGV[3]
local first = 0
if score ~= '' then
  local filed = redis.call('ZSCORE', set, member)
  if filed and tonumber(filed) == tonumber(score) then
    first = redis.call('ZRANK', set, member) + 1
  else
    -- It is gone from there: find between which entries of that score it stood.
    first = redis.call('ZCOUNT', set, '-inf', '(' .. score)
    local beyond = redis.call('ZCOUNT', set, '-inf', score)
    while first < beyond do
      local middle = math.floor((first + beyond) / 2)
      if is_after(redis.call('ZRANGE', set, middle, middle)[1], member) then
        beyond = middle
      else
        first = middle + 1
      end
    end
  end
end
return redis.call('ZRANGE', set, first, first + tonumber(ARGV[1]) - 1, 'WITHSCORES')
