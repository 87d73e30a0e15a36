-- Inserts jobs as they stand, none of them held.
--
-- uses    base, heads, writes, groups, places
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; then for each job, 3: job, payload, head.
-- answer  for each job: 1 inserted, 0 its ID is known.
local ids, n = {}, 0
for at = 2, #ARGV, 3 do
  n = n + 1
  ids[n] = ARGV[at]
end
local known = fields(HEADS, ids)
local forgotten_at = call('ZMSCORE', DONE, unpack(ids))
local answers, inserted = {}, {}
local stored = tonumber(call('HGET', QUEUE, 'added') or 0)
local highest = stored
for n = 1, #ids do
  local at, id = 3 * n - 1, ids[n]
  local remembered = tonumber(forgotten_at[n] or nil)
  if known[n] or inserted[id] or (remembered and remembered > NOW) then
    answers[n] = 0
  else
    answers[n] = 1
    inserted[id] = true
    if remembered then
      later(writes('ZREM', 'done'), id)
    end
    local head = parsed(ARGV[at + 2])
    highest = math.max(highest, tonumber(head.order))
    later(writes('HSET', 'jobs'), payload_of(id), ARGV[at + 1])
    refresh(enter(id, head))
  end
end
if highest > stored then
  call('HSET', QUEUE, 'added', int(highest))
end
finish()
return answers
