-- Takes dead jobs back to their places, as if they had never failed.
--
-- uses    base, heads, writes, groups, places
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2 and following: the jobs.
-- answer  for each: "" where there is no such job, else the first letter of the place it was in.
local ids, seen, answers = {}, {}, {}
for n = 2, #ARGV do
  ids[n - 1] = ARGV[n]
end
local heads = fields(HEADS, ids)
for n = 1, #ids do
  local id = ids[n]
  local head = seen[id] or parsed(heads[n])
  answers[n] = head and head.place or ''
  if head and head.place == 'd' then
    local group = leave(id, head)
    head.attempts, head.stalls, head.error, head.claim = '0', '0', '', ''
    wait(head, 0)
    enter(id, head)
    refresh(group)
  end
  seen[id] = head
end
finish()
return answers
