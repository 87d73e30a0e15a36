-- Forgets IDs of done jobs whose time is over, and deletes jobs that have been dead for long.
--
-- uses    base, heads, writes, groups, places
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: how many at most; 3: how long dead jobs are kept, in milliseconds, or "" for ever.
-- answer  how many went; 1 if more are left, else 0.
local limit = tonumber(ARGV[2])
local ids = call('ZRANGEBYSCORE', DONE, '-inf', int(NOW), 'LIMIT', 0, limit + 1)
local gone, more = math.min(#ids, limit), #ids > limit
if gone > 0 then
  call('ZREM', DONE, unpack(ids, 1, gone))
end
if ARGV[3] ~= '' then
  local room = limit - gone
  local dead = call('ZRANGEBYSCORE', JOBS .. 'died', '-inf', int(NOW - tonumber(ARGV[3])), 'LIMIT', 0, room + 1)
  more = more or #dead > room
  local heads = fields(HEADS, dead)
  for n = 1, math.min(room, #dead) do
    local head = parsed(heads[n])
    if head then
      leave(dead[n], head)
    else
      later(writes('ZREM', 'died'), dead[n])
      later(writes('ZREM', 'dead'), dead[n])
    end
    drop(dead[n])
    gone = gone + 1
  end
end
finish()
return {gone, more and 1 or 0}
