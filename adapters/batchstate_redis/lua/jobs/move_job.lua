-- Puts a job that is not held into another group, in the place its order has there.
--
-- uses    base, heads, writes, groups, places
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the job; 3: the group, "" for none.
-- answer  1 it is in that group; 0 there is no such job; 2 it is held.
local id = ARGV[2]
local head = parsed(call('HGET', HEADS, id))
if not head then
  return 0
end
if head.place == 'a' then
  return 2
end
if head.group == ARGV[3] then
  return 1
end
local group = leave(id, head)
head.group = ARGV[3]
enter(id, head)
refresh(group)
refresh(group_of(head.group))
finish()
return 1
