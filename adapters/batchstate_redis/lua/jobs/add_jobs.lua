-- Adds jobs behind all that are there.
--
-- uses    base, heads, writes, groups, places
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; then for each job, 6:
--           job
--           payload
--           group    "" for none
--           most     with how many failures it is dead
--           due      "+" and the milliseconds from now, or the instant
--           again    1 to add it though it was done a short while ago, else 0
-- answer  for each job: 1 added, 0 its ID is known.
local ids, n = {}, 0
for at = 2, #ARGV, 6 do
  n = n + 1
  ids[n] = ARGV[at]
end
local known = fields(HEADS, ids)
local forgotten_at = call('ZMSCORE', DONE, unpack(ids))
local answers, added_here = {}, {}
local numbers = call('HINCRBY', QUEUE, 'added', n) - n
for n = 1, #ids do
  local at, id = 6 * n - 4, ids[n]
  local due = ARGV[at + 4]
  due = due:sub(1, 1) == '+' and NOW + tonumber(due:sub(2)) or tonumber(due)
  local remembered = tonumber(forgotten_at[n] or nil)
  if known[n] or added_here[id] or (remembered and remembered > NOW and ARGV[at + 5] == '0') then
    answers[n] = 0
  else
    answers[n] = 1
    added_here[id] = true
    if remembered then
      later(writes('ZREM', 'done'), id)
    end
    local head = {
      claim = '', deliveries = '0', attempts = '0', stalls = '0', order = int(numbers + n), added = int(NOW),
      most = ARGV[at + 3], group = ARGV[at + 2], error = '',
    }
    wait(head, math.max(0, due - NOW))
    later(writes('HSET', 'jobs'), payload_of(id), ARGV[at + 1])
    refresh(enter(id, head))
  end
end
finish()
return answers
